// The Vercel AI SDK with the model of its own tests and its own OpenTelemetry integration.

import { answers, book, load, lookup, played } from './cases.mjs';

const { generateText, registerTelemetry, stepCountIs, tool } = await load('ai');
const { MockLanguageModelV4 } = await load('ai/test');
const { OpenTelemetry } = await load('@ai-sdk/otel');
const { OTLPTraceExporter } = await load('@opentelemetry/exporter-trace-otlp-proto');
const { BatchSpanProcessor, NodeTracerProvider } = await load('@opentelemetry/sdk-trace-node');
const { resourceFromAttributes } = await load('@opentelemetry/resources');
const { z } = await load('zod');

const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'travel-bot' }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
registerTelemetry(new OpenTelemetry());

const tools = {
  book: tool({ inputSchema: z.object({ day: z.string(), seats: z.number() }), execute: book }),
  lookup: tool({ inputSchema: z.object({ key: z.string() }), execute: lookup }),
};

await played((each) =>
  generateText({
    model: new MockLanguageModelV4({ modelId: 'script', doGenerate: answers(each) }),
    tools,
    prompt: 'go',
    stopWhen: stepCountIs(3),
    telemetry: { functionId: 'travel' },
  }),
);
await provider.shutdown();
