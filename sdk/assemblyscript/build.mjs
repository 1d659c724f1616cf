// Builds the examples and the conformance guest into build/.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";

const modules = { greeter: "examples/greeter.ts", prices: "examples/prices.ts", conform: "conformance/conform.ts" };

mkdirSync("build", { recursive: true });
for (const [name, source] of Object.entries(modules)) {
  execFileSync("npx", ["--no-install", "asc", source, "--config", "asconfig.json", "--outFile", `build/${name}.wasm`], {
    stdio: "inherit",
  });
}
