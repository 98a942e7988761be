// Evaluates expressions on the race view's modules, without a page: one JSON request {code, argument} per line in, one
// JSON reply {value} or {error} per line out. `M` holds what all modules of the folder given export.
const [folder] = Deno.args;
/** @type {Record<string, unknown>} */
const M = {};
for (const { name } of [...Deno.readDirSync(folder)].sort((a, b) => a.name.localeCompare(b.name))) {
  if (name.endsWith('.js')) Object.assign(M, await import(`file://${folder}/${name}`));
}
Object.assign(globalThis, { M });

/** @param {string} line */
async function reply(line) {
  const { code, argument } = JSON.parse(line);
  try {
    const found = (0, eval)(`(${code})`);
    return { value: await (typeof found === 'function' ? found(argument) : found) ?? null };
  } catch (error) {
    return { error: String(error instanceof Error ? error.stack : error) };
  }
}

let waiting = '';
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (waiting + text).split('\n');
  waiting = lines.pop() ?? '';
  for (const line of lines) console.log(JSON.stringify(await reply(line)));
}
