// Reports the tool calls of a JavaScript agent to toolfault, without any package.
// What may be sent is in the JSON schema at /v1/schema. Types are JSDoc, which TypeScript checks.
// @ts-check
import { randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';
/** @typedef {{ tool: string, session: string, callId?: string }} Call */

/** A UUID of version 7 (RFC 9562, section 5.7): sorted by time, so that storing it is cheap. */
export function uuid7() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

export class Reporter {
  /** @type {object[]} */
  #events = [];
  #dropped = 0;
  #seq = 0;

  /** @param {{ url: string, key: string, resource?: Record<string, string> }} options */
  constructor({ url, key, resource = {} }) {
    this.url = `${url}/v1/events`;
    this.key = key;
    this.resource = resource;
  }

  /**
   * Run a tool and report how it went; its result and its error reach the caller unchanged.
   * @template T
   * @param {Call} call
   * @param {() => Promise<T>} run
   * @returns {Promise<T>}
   */
  async run(call, run) {
    const began = Date.now();
    try {
      const result = await run();
      this.#add(call, began);
      return result;
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      const exception = { type: name.slice(0, 200), message: message.slice(0, 2000) };
      const code = name === 'AbortError' ? 'cancelled' : 'internal_error';
      this.#add(call, began, { code, category: 'internal', audience: 'llm', exception });
      throw error;
    }
  }

  /** @param {Call} call @param {number} began @param {object} [error] */
  #add(call, began, error) {
    // Bounded: an agent that cannot reach its collector must not run out of memory.
    if (this.#events.length >= 1000) this.#dropped += 1;
    else this.#events.push({
      type: 'tool_call',
      event_id: uuid7(),
      occurred_at: new Date().toISOString(),
      session_id: call.session,
      seq: (this.#seq += 1), // of two calls in one millisecond it says which was first
      tool: call.tool,
      success: error === undefined,
      duration_ms: Date.now() - began,
      ...(call.callId && { call_id: call.callId }),
      ...(error && { error }),
    });
  }

  /** Send what was reported, again where the server is busy; say whether all of it is stored. */
  async flush(tries = 3) {
    const [events, lost] = [this.#events.splice(0), this.#dropped];
    const dropped = lost && { dropped: { queue_overflow: lost } };
    const body = JSON.stringify({ schema_version: 1, resource: this.resource, ...dropped, events });
    const headers = { Authorization: `Bearer ${this.key}`, 'Content-Type': 'application/json' };
    for (let left = tries; events.length && left > 0; left -= 1) {
      const answer = await fetch(this.url, { method: 'POST', headers, body }).catch(() => null);
      const receipt = answer?.ok ? await answer.json().catch(() => null) : null;
      if (receipt?.rejected) this.#dropped -= lost;
      if (receipt?.rejected) return receipt.rejected.length === 0;
      // A wrong key or address stays wrong for now. Any other answer may be another one soon.
      if (/^4(?!08|29)/.test(`${answer?.status}`)) break;
      const seconds = Number(answer?.headers.get('Retry-After') ?? 1) || 0;
      if (left > 1) await new Promise((next) => setTimeout(next, Math.min(seconds, 30) * 1000));
    }
    // Kept for the next time, whatever the answer was. Ids are the sender's: nothing counts twice.
    this.#events.unshift(...events);
    return events.length === 0;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { TOOLFAULT_URL: url = 'http://127.0.0.1:8321', TOOLFAULT_KEY: key = '' } = process.env;
  const reporter = new Reporter({ url, key, resource: { agent: 'travel-bot' } });
  const call = { tool: 'book', session: 'trip-7' };
  const sold = () => Promise.reject(new Error('no seats left'));
  await reporter.run({ ...call, callId: 'call-1' }, sold).catch(() => {});
  await reporter.run({ ...call, callId: 'call-2' }, async () => 'booked');
  console.log((await reporter.flush()) ? 'stored' : 'not stored');
}
