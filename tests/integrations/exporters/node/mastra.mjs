// An agent of Mastra with the model of the Vercel AI SDK's tests and Mastra's own exporter.

import { CONVERSATION, answers, book, load, lookup, played } from './cases.mjs';

const { Mastra } = await load('@mastra/core/mastra');
const { Agent } = await load('@mastra/core/agent');
const { createTool } = await load('@mastra/core/tools');
const { Observability } = await load('@mastra/observability');
const { OtelExporter } = await load('@mastra/otel-exporter');
const { MockLanguageModelV4 } = await load('ai/test');
const { z } = await load('zod');

const [header, value] = process.env.OTEL_EXPORTER_OTLP_HEADERS.split('=');
const custom = {
  endpoint: `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`,
  headers: { [header]: decodeURIComponent(value) },
  protocol: 'http/protobuf',
};
const observability = new Observability({
  configs: {
    otel: {
      serviceName: 'travel-bot',
      exporters: [new OtelExporter({ provider: { custom } })],
    },
  },
});
const made = (id, inputSchema, execute) =>
  createTool({ id, description: id, inputSchema, execute });
const tools = {
  book: made('book', z.object({ day: z.string(), seats: z.number() }), book),
  lookup: made('lookup', z.object({ key: z.string() }), lookup),
};

let model;
const travel = new Agent({
  id: 'travel',
  name: 'travel',
  instructions: 'go',
  model: () => model,
  tools,
});
const mastra = new Mastra({ agents: { travel }, observability, logger: false });

await played(async (each) => {
  model = new MockLanguageModelV4({ modelId: 'script', doGenerate: answers(each) });
  await mastra.getAgent('travel').generate('go', {
    maxSteps: 3,
    tracingOptions: { metadata: { threadId: CONVERSATION } },
  });
});
await observability.shutdown();
