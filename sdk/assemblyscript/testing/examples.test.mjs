import assert from "node:assert/strict";
import { test } from "node:test";

import { action, describe, load, Refusal, turn } from "./host.mjs";

test("the greeter greets and counts", async () => {
  const greeter = await load("build/greeter.wasm");
  const first = turn(greeter, { body: 'Ada "the" Countess', params: { greeting: "Grüezi" } });
  assert.equal(first.error, null);
  assert.equal(first.mail[0].finish_message, 'Grüezi, Ada "the" Countess! (greeting 1 of this task)');
  const second = turn(greeter, { body: "Ada", state: first.state });
  assert.equal(second.mail[0].finish_message, "Hello, Ada! (greeting 2 of this task)");
});

test("a refusal fails the turn", async () => {
  const answer = () => { throw new Refusal("DENIED", "no"); };
  const out = turn(await load("build/greeter.wasm"), { body: "Ada", answer });
  assert.deepEqual(out.error, { code: "DENIED", message: "no" });
  assert.equal(out.state, null);
});

test("agent and action agree", async () => {
  const prices = await load("build/prices.wasm");
  assert.equal(turn(prices, { body: "tea" }).mail[0].finish_message, "250 cents");
  assert.deepEqual(action(prices, "price_of", { item: "tea" }).answer, { cents: 250 });
  assert.equal(action(prices, "price_of", { item: "gold" }).error.code, "NOT_FOUND");
  assert.equal(describe(prices).actions[0].name, "price_of");
});

test("an abort ends the turn with its own words", async () => {
  const out = turn(await load("build/conform.wasm"), { body: '[["abort",{"code":11,"message":"gave up"}]]' });
  assert.equal(out.error.message, "INTERNAL: gave up");
});
