// Builds the examples, the conformance guest and what the tests need into build/. ASC
// names another compiler than that of npm ci.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";

const modules = {
  greeter: "examples/greeter.ts",
  prices: "examples/prices.ts",
  gather: "examples/gather.ts",
  reminder: "examples/reminder.ts",
  clerk: "examples/clerk.ts",
  conform: "conformance/conform.ts",
  pending: "testing/pending.ts",
  helpers: "testing/helpers.ts",
  models: "testing/models.ts",
};

const [program, ...first] = process.env.ASC ? [process.env.ASC] : ["npx", "--no-install", "asc"];
mkdirSync("build", { recursive: true });
for (const [name, source] of Object.entries(modules)) {
  execFileSync(program, [...first, source, "--config", "asconfig.json", "--outFile", `build/${name}.wasm`], {
    stdio: "inherit",
  });
}
