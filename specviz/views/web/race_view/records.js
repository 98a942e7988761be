// The records of a trace as they stand in JSON. Generated from the Python records: edit those, then `make records`.

/** @type {Verdict[]} */
export const VERDICTS = ['accepted', 'rejected', 'untested'];

/** @type {Kind[]} */
export const KINDS = ['correction', 'bonus', 'standard'];

/**
 * What a lane's settings are where its trace does not say.
 * @type {Required<Settings>}
 */
export const SETTINGS = {
  k: 4,
  max_new_tokens: 64,
  temperature: 0,
  top_k: 0,
  top_p: 1,
  seed: 0,
  stop: [],
  ignore_eos: false,
  k_policy: 'fixed',
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  telemetry: true,
};

/**
 * The fields of each record that travels as an array, in order, and the default of those that may be left out.
 * @type {Record<'Round' | 'DraftToken' | 'TargetToken', [name: string, absent?: string | number | boolean | null][]>}
 */
export const FIELDS = {
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
  TargetToken: [
    ['token'],
    ['kind'],
    ['target_prob', null],
    ['draw_prob', null],
    ['margin', null],
    ['residual_top', null],
    ['target_top', null],
  ],
};

/** @typedef {[id: number | null, text?: string | null, piece?: string | null]} Token */

/** @typedef {[token: Token, probability: number]} Alternative */

/**
 * @typedef {object} Settings
 * @property {number} [k]
 * @property {number} [max_new_tokens]
 * @property {number} [temperature]
 * @property {number} [top_k]
 * @property {number} [top_p]
 * @property {number} [seed]
 * @property {string[]} [stop]
 * @property {boolean} [ignore_eos]
 * @property {string} [k_policy]
 * @property {number} [repetition_penalty]
 * @property {number} [presence_penalty]
 * @property {number} [frequency_penalty]
 * @property {boolean} [telemetry]
 */

/** @typedef {'accepted' | 'rejected' | 'untested'} Verdict */

/** @typedef {'correction' | 'bonus' | 'standard'} Kind */

/** @typedef {'eos' | 'stop' | 'length' | 'context' | 'cancelled' | 'error'} Reason */

/**
 * @typedef {object} DraftToken
 * @property {Token} token
 * @property {Verdict} verdict
 * @property {number | null} [parent]
 * @property {string | null} [source]
 * @property {number | null} [draft_prob]
 * @property {number | null} [target_prob]
 * @property {number | null} [draw]
 * @property {number | null} [overlap]
 * @property {Alternative[] | null} [draft_top]
 * @property {Alternative[] | null} [target_top]
 */

/**
 * @typedef {object} TargetToken
 * @property {Token} token
 * @property {Kind} kind
 * @property {number | null} [target_prob]
 * @property {number | null} [draw_prob]
 * @property {number | null} [margin]
 * @property {Alternative[] | null} [residual_top]
 * @property {Alternative[] | null} [target_top]
 */

/**
 * @typedef {object} Round
 * @property {number} index
 * @property {number} k
 * @property {number | null} drafted
 * @property {DraftToken[]} drafts
 * @property {TargetToken | null} target
 * @property {string | null} [note]
 * @property {number | null} [start_seconds]
 * @property {number | null} [draft_seconds]
 * @property {number | null} [verify_seconds]
 * @property {number | null} [other_seconds]
 * @property {number | null} [telemetry_seconds]
 * @property {number | null} [draft_passes]
 * @property {number | null} [target_passes]
 * @property {number | null} [previous_draft_choice]
 */

/**
 * @typedef {object} VerifyCurve
 * @property {number[]} widths
 * @property {number[]} seconds
 * @property {number[]} spread
 */

/**
 * @typedef {object} ModelInfo
 * @property {string} role
 * @property {string} name
 * @property {string} source
 * @property {string | null} revision
 * @property {string} architecture
 * @property {number} parameters
 * @property {number} vocabulary
 * @property {number} context_length
 * @property {number} bytes
 * @property {string} execution
 * @property {string | null} [note]
 */

/**
 * @typedef {object} SourceInfo
 * @property {string} name
 * @property {string} label
 * @property {string} [meaning]
 */

/**
 * @typedef {object} LaneInfo
 * @property {string} name
 * @property {string} draft
 * @property {string} label
 * @property {Settings} settings
 * @property {Record<string, string | number | boolean | string[]>} [options]
 * @property {ModelInfo | null} [draft_model]
 * @property {string | null} [note]
 * @property {boolean} [tree]
 * @property {SourceInfo[]} [sources]
 */

/**
 * @typedef {object} Header
 * @property {string | null} prompt
 * @property {number[]} prompt_ids
 * @property {ModelInfo} target
 * @property {LaneInfo[]} lanes
 * @property {string} device
 * @property {string} device_name
 * @property {string} dtype
 * @property {number} threads
 * @property {Record<string, string>} versions
 * @property {string} created
 * @property {boolean} [chat]
 * @property {string} [mode]
 * @property {number | null} [load_seconds]
 * @property {number | null} [warmup_seconds]
 * @property {number | null} [prefill_seconds]
 * @property {VerifyCurve | null} [curve]
 * @property {number} [schema]
 */

/**
 * @typedef {object} RaceStarted
 * @property {'RaceStarted'} event
 * @property {Header} header
 */

/**
 * @typedef {object} LaneStarted
 * @property {'LaneStarted'} event
 * @property {string} lane
 * @property {number | null} [prefill_seconds]
 * @property {number | null} [warmup_seconds]
 */

/**
 * @typedef {object} RoundDone
 * @property {'RoundDone'} event
 * @property {string} lane
 * @property {Round} round
 */

/**
 * @typedef {object} LaneFinished
 * @property {'LaneFinished'} event
 * @property {string} lane
 * @property {Reason} reason
 * @property {string | null} text
 * @property {string | null} [tail]
 * @property {string | null} [message]
 * @property {number | null} [wall_seconds]
 */

/**
 * @typedef {object} Calibrated
 * @property {'Calibrated'} event
 * @property {VerifyCurve} curve
 */

/**
 * @typedef {object} RaceFinished
 * @property {'RaceFinished'} event
 * @property {boolean} [cancelled]
 */

/**
 * @typedef {object} Headline
 * @property {string} big
 * @property {string} rest
 */

/**
 * @typedef {object} Badge
 * @property {string} text
 * @property {string} kind
 */

/**
 * @typedef {object} Row
 * @property {string} title
 * @property {string} meaning
 * @property {string[]} cells
 */

/**
 * @typedef {object} SourceRow
 * @property {string} lane
 * @property {string} source
 * @property {string[]} cells
 */

/**
 * @typedef {object} Report
 * @property {string[]} facts
 * @property {Headline | null} headline
 * @property {boolean} loss
 * @property {Badge[]} badges
 * @property {string[]} lanes
 * @property {Row[]} rows
 * @property {string[]} reasons
 * @property {string[]} source_head
 * @property {SourceRow[]} sources
 * @property {number} runs
 */

/** @typedef {RaceStarted | LaneStarted | RoundDone | LaneFinished | Calibrated | RaceFinished} Event */
