// The calls that the scripted models ask for; each case is a run of its own.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export const CONVERSATION = 'trip-7';

export const CASES = [
  { name: 'arguments', tool: 'book', arguments: { day: '2026-11-30' } },
  { name: 'raises', tool: 'lookup', arguments: { key: 'boom' } },
  { name: 'unknown', tool: 'bok', arguments: { day: '2026-11-30', seats: 2 } },
  { name: 'told', tool: 'lookup', arguments: { key: 'sold out' } },
  { name: 'works', tool: 'book', arguments: { day: '2026-11-30', seats: 2 } },
];

export const book = async ({ day, seats }) => `booked ${seats} for ${day}`;

export const lookup = async ({ key }) => {
  if (key === 'boom') throw new Error('database is unreachable');
  return 'Error: no seats left';
};

// The packages lie in a folder of their own, so that the checkout stays as it is.
const require = createRequire(`${process.env.TOOLFAULT_NODE_MODULES}/../package.json`);
export const load = (name) => import(pathToFileURL(require.resolve(name)).href);

// What the stub of a model answers: the call first, then the end.
export const answers = (at) => {
  const usage = {
    inputTokens: { total: 1, noCache: 1 },
    outputTokens: { total: 1, text: 1 },
  };
  const call = {
    type: 'tool-call',
    toolCallId: `call-${at.name}`,
    toolName: at.tool,
    input: JSON.stringify(at.arguments),
  };
  const calls = { unified: 'tool-calls', raw: 'tool-calls' };
  const stop = { unified: 'stop', raw: 'stop' };
  return [
    { content: [call], finishReason: calls, usage, warnings: [] },
    { content: [{ type: 'text', text: 'done' }], finishReason: stop, usage, warnings: [] },
  ];
};

export async function played(run) {
  for (const each of CASES) {
    try {
      await run(each);
    } catch (error) {
      console.log(`${each.name}: ${error.name}`);
    }
  }
}
