// The TypeScript client against the running service.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";

import {
  BrokenAnswer,
  Client,
  FeatureNotAvailable,
  HeadTooLarge,
  InvalidApiKey,
  InvalidCursor,
  InvalidParameter,
  MissingKey,
  NotFound,
  ServiceUnavailable,
  Unreachable,
  VERSION,
  VersionNotServed,
} from "dds-client";

const ROOT = process.env.PROJECT;
const client = new Client();

/** The service behind a relay that fails as told. */
async function relay(t, ...faults) {
  const child = spawn("python3", [`${ROOT}/tests/clients/relay.py`, process.env.DDS_API_URL, ...faults]);
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value;
  const calls = async () => {
    child.kill();
    const all = [];
    for await (const line of lines) all.push(line);
    return all;
  };
  return { url, calls };
}

async function everyRow(rows) {
  const all = [];
  for await (const row of rows) all.push(row);
  return all;
}

test("a small rate walks sixty pages unaided", async () => {
  const rate = "update accounts.tiers set rate_per_minute = 600, burst = 10 where tier = 'starter'";
  execFileSync(process.env.PSQL, ["--quiet", process.env.DATABASE_URL, "--command", rate]);
  const { data } = await client.get("/v1/stocks", { params: { query: { has_dividends: true, limit: 50 } } });
  const symbols = data.map((row) => row.symbol);
  const slow = new Client({ key: process.env.KEY_STARTER });
  const began = Date.now();
  const seen = new Set();
  let count = 0;
  const query = { symbols, start_date: "2022-01-01", limit: 5 };
  for await (const page of slow.pages("/v1/dividends/history", { params: { query } })) {
    for (const row of page.data) seen.add(`${row.symbol} ${row.id}`);
    if (++count === 60) break;
  }
  assert.equal(seen.size, 300);
  assert.ok(Date.now() - began > 3000, "60 calls of ten at once and ten a second were never refused");
});

test("a page that breaks off throws and is not asked again", async (t) => {
  const between = await relay(t, "pass", "cut");
  const walk = everyRow(new Client({ url: between.url }).rows("/v1/stocks", { params: { query: { limit: 5 } } }));
  await assert.rejects(walk, BrokenAnswer);
  assert.equal((await between.calls()).length, 2);
});

test("dropped and busy calls are repeated", async (t) => {
  const between = await relay(t, "drop", "busy", "drop");
  const began = Date.now();
  await new Client({ url: between.url }).get("/v1/sectors");
  assert.ok(Date.now() - began >= 1000, "Retry-After: 1 was not waited for");
  assert.equal((await between.calls()).length, 4);
});

test("patience ends", async (t) => {
  const impatient = { retry: { attempts: 2, base: 0.01 } };
  const dropping = await relay(t, ...Array(9).fill("drop"));
  await assert.rejects(new Client({ url: dropping.url, ...impatient }).get("/v1/sectors"), Unreachable);
  const busy = await relay(t, ...Array(9).fill("busy"));
  await assert.rejects(new Client({ url: busy.url, ...impatient }).get("/v1/sectors"), ServiceUnavailable);
});

test("an unchanged answer is asked for conditionally", async (t) => {
  const between = await relay(t);
  const asking = new Client({ url: between.url });
  assert.deepEqual(await asking.get("/v1/sectors"), await asking.get("/v1/sectors"));
  const [first, again] = await between.calls();
  assert.match(first, /^first/);
  assert.match(again, /^again/);
});

test("later calls ask for data that is not older", async (t) => {
  const between = await relay(t, "pass", "lost");
  const asking = new Client({ url: between.url, keptAnswers: 0 });
  for (let call = 0; call < 3; call++) await asking.get("/v1/sectors");
  const [first, refused, without, again] = (await between.calls()).map((line) => line.split(" ").slice(4));
  assert.deepEqual([first, without], [[], []]);
  assert.deepEqual(refused, again);
  assert.match(refused[0], /^g1\./);
});

test("a call may name the oldest data that it accepts", async () => {
  const { data, meta } = await client.get("/v1/sectors");
  const least = (min_version) => client.get("/v1/sectors", { params: { query: { min_version } } });
  assert.deepEqual((await least(meta.data_version)).data, data);
  const [generation] = meta.data_version.split(".");
  await assert.rejects(least(`${generation}.999999999.999999999`), VersionNotServed);
  // A refused version is not sent again.
  assert.deepEqual((await client.get("/v1/sectors")).data, data);
});

test("refusals have types", async () => {
  const path = { symbol: "NOPE" };
  await assert.rejects(client.get("/v1/stocks/{symbol}/quote", { params: { path } }), NotFound);
  await assert.rejects(client.raw("/v1/stocks", { limit: 0 }), (error) => {
    assert.ok(error instanceof InvalidParameter && error.requestId);
    return error.body.param === "limit";
  });
  await assert.rejects(client.get("/v1/stocks", { params: { query: { cursor: "nonsense" } } }), InvalidCursor);
  await assert.rejects(client.raw("/v1/search", { q: "x".repeat(100_000) }), HeadTooLarge);
  await assert.rejects(new Client({ key: "dds_live_wrong" }).get("/v1/stocks"), InvalidApiKey);
  const free = new Client({ key: process.env.KEY_FREE });
  await assert.rejects(free.get("/v1/bulk/quotes", { params: { query: { symbols: ["SPY"] } } }), FeatureNotAvailable);
  const { DDS_API_KEY: kept } = process.env;
  delete process.env.DDS_API_KEY;
  assert.throws(() => new Client(), MissingKey);
  process.env.DDS_API_KEY = kept;
});

test("every operation is reachable, and no decimal is a binary float", async () => {
  const document = JSON.parse(readFileSync(`${ROOT}/api/openapi.json`, "utf8"));
  const [{ slug }] = (await client.get("/v1/sectors", { params: { query: { limit: 1 } } })).data;
  const listed = { symbol: "SPY", symbols: ["SPY"], q: "SPY", sector: slug, holdings: ["SPY:120"] };
  const known = { ...listed, base: "EUR", quote: "USD" };
  for (const [path, { get, post }] of Object.entries(document.paths)) {
    // A stream has separate tests.
    if (["/v1/changes", "/v1/files"].includes(path)) continue;
    const params = { path: {}, query: {} };
    for (const { name, required, in: place } of (get ?? post).parameters ?? []) {
      // A list of symbols may be left out only by whoever asks for changes.
      if (required || name === "symbols") params[place][name] = known[name];
    }
    const body = post?.requestBody.content["application/json"].example;
    const answer = get ? await client.get(path, { params }) : await client.post(path, { params, body });
    assert.ok(answer.data, path);
    assert.deepEqual(fractions(answer), [], path);
  }
});

/** The numbers that are no integers. */
function fractions(value) {
  if (typeof value === "number") return Number.isSafeInteger(value) ? [] : [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(fractions) : [];
}

test("the version is the package's", () => {
  const manifest = JSON.parse(readFileSync(`${ROOT}/api/clients/typescript/package.json`, "utf8"));
  assert.equal(VERSION, manifest.version);
});

/** Changes of some symbols from the beginning. */
async function allChanges(asked) {
  const { data } = await client.get("/v1/stocks", { params: { query: { has_dividends: true, limit: 2 } } });
  const symbols = data.map((row) => row.symbol);
  const { meta } = await client.get("/v1/stocks/{symbol}/splits", { params: { path: { symbol: symbols[0] } } });
  const since = `${meta.sync_from.split(".")[0]}.0`;
  return everyRow(asked.changes({ symbols, since, follow: false }));
}

test("a stream goes on after lost connections", async (t) => {
  const everything = await allChanges(client);
  const { url } = await relay(t, "cut", "drop", "busy", "cut");
  const resumed = await allChanges(new Client({ url }));
  assert.deepEqual(resumed, everything);
  assert.equal(new Set(everything.map((change) => change.since)).size, everything.length);
  const dividend = everything.find((change) => change.kind === "dividends");
  assert.equal(typeof dividend.row.amount, "string");
});

test("a stream that is refused throws", async () => {
  const changes = client.changes({ symbols: ["SPY"], since: "00000000.1" });
  await assert.rejects(changes.next(), InvalidParameter);
});
