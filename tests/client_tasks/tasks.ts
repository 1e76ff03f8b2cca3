// The tasks with the TypeScript client. Each line of standard input is a task, {name, given, held}; each line of standard output
// what came of it, {answer, calls}.

import { createInterface } from "node:readline";

import { Big } from "big.js";
import { Client, type Row } from "dds-client";

interface Given {
  portfolio: Record<string, number>;
  fifty: string[];
  sector: string;
  name: string;
  today: string;
  in_a_year: string;
  in_two_weeks: string;
  ten_years_ago: string;
  two_years_ago: string;
}

const client = new Client();

function payments(given: Given): Promise<Row<"/v1/dividends/payment-dates">[]> {
  const span = { start_date: given.today, end_date: given.in_a_year };
  const query = { symbols: Object.keys(given.portfolio), include_projected: true, limit: 500, ...span };
  return client.get("/v1/dividends/payment-dates", { params: { query } }).then(({ data }) => data);
}

async function all<R>(rows: AsyncIterable<R>): Promise<R[]> {
  const found = [];
  for await (const row of rows) found.push(row);
  return found;
}

/** What a number of shares comes to. */
const times = (amount: string | null | undefined, shares: number | undefined): Big => new Big(amount ?? "0").times(shares ?? 0);

/** Rows by id, and where they stand. */
type Copy = [rows: Record<string, unknown[]>, since: string | undefined];

const tasks: Record<string, (given: Given, held: Copy | undefined) => Promise<unknown>> = {
  async portfolio_value({ portfolio }) {
    const { data } = await client.get("/v1/bulk/quotes", { params: { query: { symbols: Object.keys(portfolio) } } });
    const values = data.map((quote) => [quote.symbol, times(quote.price, portfolio[quote.symbol])] as const);
    return [Object.fromEntries(values), values.reduce((sum, [, value]) => sum.plus(value), new Big(0))];
  },

  async next_payments(given) {
    const rows = (await payments(given)).reverse();
    return Object.fromEntries(rows.map((row) => [row.symbol, [row.payment_date, row.amount]]));
  },

  async income_of_twelve_months(given) {
    const months: Record<string, Record<string, Big>> = {};
    for (const row of await payments(given)) {
      const month = (months[row.event_date.slice(0, 7)] ??= { declared: new Big(0), estimated: new Big(0) });
      month[row.amount_status] = (month[row.amount_status] ?? new Big(0)).plus(times(row.amount, given.portfolio[row.symbol]));
    }
    return months;
  },

  async ex_dates_of_two_weeks({ today, in_two_weeks }) {
    const query = { start_date: today, end_date: in_two_weeks, limit: 500 };
    const { data } = await client.get("/v1/dividends/ex-dates", { params: { query } });
    return data.map((row) => [row.symbol, row.ex_date, row.amount]);
  },

  async ten_years_for_fifty({ fifty, ten_years_ago }) {
    const query = { symbols: fifty, start_date: ten_years_ago, limit: 1000 };
    const rows = await all(client.rows("/v1/dividends/history", { params: { query } }));
    return rows.map((row) => [row.symbol, row.ex_date, row.adjusted_amount]);
  },

  async bulk_of_fifty({ fifty }) {
    const { data } = await client.get("/v1/bulk/dividends", { params: { query: { symbols: fifty, per_symbol: 20 } } });
    return Object.fromEntries(data.map((one) => [one.symbol, one.dividends?.map((row) => row.amount)]));
  },

  async screener_walked() {
    const walked = await all(client.rows("/v1/screener", { params: { query: { min_yield: "2", limit: 5 } } }));
    const { data } = await client.get("/v1/screener", { params: { query: { min_yield: "2", limit: 1000 } } });
    if (JSON.stringify(walked) !== JSON.stringify(data)) throw new Error("the walk is not the page");
    return walked.map((row) => row.symbol);
  },

  async best_of_a_sector({ sector }) {
    const query = { sector, sort: ["dividend_yield.desc" as const], limit: 5 };
    const { data } = await client.get("/v1/screener", { params: { query } });
    return data.map((row) => [row.symbol, row.dividend_yield]);
  },

  async steady_growers() {
    const query = { min_streak: "5", max_payout_ratio: "80", limit: 1000 };
    const { data } = await client.get("/v1/screener", { params: { query } });
    return data.map((row) => [row.symbol, row.increase_streak_years, row.payout_ratio]);
  },

  async dividend_kings() {
    const { data } = await client.get("/v1/screener/dividend-kings", { params: { query: { limit: 500 } } });
    return data.map((row) => row.symbol);
  },

  async market_of_today() {
    const { data } = await client.get("/v1/bulk/prices", { params: { query: { limit: 10_000 } } });
    return data.map((row) => [row.symbol, row.close, row.volume]);
  },

  async chart_of_ten_years() {
    const query = { range: "10y", sort: ["date.asc"], limit: 5000 } as const;
    const { data } = await client.get("/v1/prices/{symbol}", {
      params: { path: { symbol: "SPY" }, query: { ...query, adjustment: ["all"], sort: [...query.sort] } },
    });
    return data.map((row) => [row.date, row.close]);
  },

  async return_of_a_year() {
    const params = { path: { symbol: "SPY" }, query: { range: "1y", limit: 1 } } as const;
    return (await client.get("/v1/prices/{symbol}", { params })).meta.total_return;
  },

  async four_side_by_side({ fifty }) {
    const { data, meta } = await client.get("/v1/compare", { params: { query: { symbols: fifty.slice(0, 4) } } });
    return [data.map((one) => [one.symbol, one.quote?.price, one.metrics?.dividend_yield]), meta.best];
  },

  async found_by_name({ name }) {
    const [found] = (await client.get("/v1/search", { params: { query: { q: name, limit: 1 } } })).data;
    const path = { symbol: found?.symbol ?? "" };
    return (await client.get("/v1/stocks/{symbol}/quote", { params: { path } })).data.price;
  },

  async look_through() {
    const params = { path: { symbol: "SPY" }, query: { limit: 500 } };
    const { data } = await client.get("/v1/etfs/{symbol}/holdings", { params });
    return data.map((row) => [row.symbol, row.weight, row.yield_contribution]);
  },

  async figure_explained() {
    const params = { path: { symbol: "SPY" }, query: { explain: true } };
    const { explanation } = (await client.get("/v1/stocks/{symbol}/metrics", { params })).data;
    return explanation?.metrics.filter((one) => one.metric === "dividend_yield").map((one) => [one.rule, one.formula]);
  },

  async sectors_at_a_glance() {
    const { data } = await client.get("/v1/sectors");
    return Object.fromEntries(data.map((row) => [row.sector, row.median_yield]));
  },

  async typing_error_found() {
    const query = { symbols: ["SPY", "SPYY", "NOPE"], limit: 100 };
    return (await client.get("/v1/stocks", { params: { query } })).meta.warnings.map((warning) => warning.code);
  },

  async yield_as_known_then({ two_years_ago }) {
    const params = { path: { symbol: "SPY" }, query: { as_of: two_years_ago } };
    return (await client.get("/v1/stocks/{symbol}/metrics", { params })).data.dividend_yield;
  },

  async cuts_in_the_portfolio({ portfolio }) {
    const { data } = await client.get("/v1/bulk/metrics", { params: { query: { symbols: Object.keys(portfolio) } } });
    return Object.fromEntries(data.map((row) => [row.symbol, row.last_cut_date]));
  },

  async unchanged_since() {
    const params = { path: { symbol: "SPY" } };
    const first = await client.get("/v1/stocks/{symbol}", { params });
    const again = await client.get("/v1/stocks/{symbol}", { params });
    if (JSON.stringify(first) !== JSON.stringify(again)) throw new Error("something changed");
    return first.data.price;
  },

  async in_step({ fifty }, held) {
    let [rows, since]: Copy = held ?? [{}, undefined];
    const query = { symbols: fifty, limit: 1000, ...(since && { updated_since: since }) };
    for await (const { data, meta } of client.pages("/v1/dividends/history", { params: { query } })) {
      since = meta.sync_from ?? undefined;
      for (const row of data) {
        const id = row.id ?? "";
        if (row.status === "cancelled") delete rows[id];
        else rows[id] = [row.symbol, row.ex_date, row.amount, row.adjusted_amount, row.status];
      }
    }
    return [rows, since];
  },
};

let calls = 0;
const { fetch } = globalThis;
globalThis.fetch = (...asked) => {
  calls += 1;
  return fetch(...asked);
};

for await (const line of createInterface({ input: process.stdin })) {
  const { name, given, held } = JSON.parse(line) as { name: string; given: Given; held?: Copy };
  const task = tasks[name];
  if (!task) throw new Error(`no task ${name}`);
  calls = 0;
  const answer = await task(given, held);
  console.log(JSON.stringify({ answer, calls }));
}
