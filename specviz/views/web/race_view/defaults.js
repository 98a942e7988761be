// What a trace leaves out because it is the default. A Python test holds this file to the records.

export const SCHEMA = 1;

export const SETTINGS = {
  k: 4,
  max_new_tokens: 64,
  temperature: 0,
  top_k: 0,
  top_p: 1,
  seed: 0,
  ignore_eos: false,
  k_policy: 'fixed',
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  telemetry: true,
};

// The fields of the records that travel as arrays, in order: [name] is always there, [name, default] may be left out.
export const RECORDS = {
  Round: [
    ['index'],
    ['k'],
    ['drafted'],
    ['drafts'],
    ['target'],
    ['note', null],
    ['start_seconds', null],
    ['draft_seconds', null],
    ['verify_seconds', null],
    ['other_seconds', null],
    ['telemetry_seconds', null],
    ['draft_passes', 0],
    ['target_passes', 1],
    ['previous_draft_choice', null],
  ],
  DraftToken: [
    ['token'],
    ['verdict'],
    ['parent', null],
    ['source', null],
    ['draft_prob', null],
    ['target_prob', null],
    ['draw', null],
    ['overlap', null],
    ['draft_top', null],
    ['target_top', null],
  ],
  TargetToken: [['token'], ['kind'], ['target_prob', null], ['draw_prob', null], ['margin', null], [
    'residual_top',
    null,
  ], ['target_top', null]],
};

export const VERDICTS = ['accepted', 'rejected', 'untested'];
export const KINDS = ['correction', 'bonus', 'standard'];
