import { setTimeout as sleep } from "node:timers/promises";

import type { components } from "./document.js";
import { BrokenAnswer, refusal, type Refused, Unreachable } from "./errors.js";
import { pause, type Retry } from "./retry.js";

/** A row that was added, changed or removed. `since` is where to continue after it. */
export type Change = components["schemas"]["ChangeEvent"] & { since: string };
export type ChangeKind = components["schemas"]["ChangeKind"];

export interface ChangeQuery {
  /** The `sync_from` of an answer, the `since` of a change, or an instant. Default: the stream begins now. */
  since?: string | Date | null | undefined;
  /** Default: the whole market (Professional). */
  symbols?: string[];
  kinds?: ChangeKind[];
  /** False: the stream ends after all present changes. Default true. */
  follow?: boolean;
}

/** Something that happened to a security. `since` is where to continue after it. */
export type Notice = components["schemas"]["Notice"] & { since: string };

export interface NoticeQuery extends Omit<ChangeQuery, "kinds"> {
  /** Default: all. */
  events?: components["schemas"]["NoticeEvent"][];
  /** Default: `data`. */
  cause?: components["schemas"]["NoticeCause"][];
  /** True: also events that were more than ten sessions old when they became known. */
  backfill?: boolean;
}

/** Seconds without a heartbeat after which a connection counts as lost. The service sends one every 15 seconds. */
const SILENCE = 45;
const STATUS: Record<string, number> = { INVALID_API_KEY: 401, FEATURE_NOT_AVAILABLE: 403, QUOTA_EXCEEDED: 429 };

/** Connection of a stream. */
export interface Connection {
  url: string;
  headers: Record<string, string>;
  retry: Retry;
}

/** Changes or notices as they happen, each once. After a lost connection the stream continues. */
export async function* follow<T>(
  { url, headers, retry }: Connection,
  query: ChangeQuery & NoticeQuery,
): AsyncGenerator<T, void> {
  let last: string | undefined;
  for (let attempt = 1; ; attempt++) {
    let lost: Refused | Unreachable;
    const silence = new Silence();
    try {
      const response = await fetch(address(url, query), {
        headers: { ...headers, accept: "text/event-stream", ...(last && { "last-event-id": last }) },
        signal: silence.signal,
      });
      if (response.status !== 200 || !response.body) {
        lost = refusal(response.status, await response.text(), response.headers);
      } else {
        for await (const event of events(response.body, silence)) {
          attempt = 0;
          last = event["id"] ?? last;
          if (event["data"] === undefined) continue;
          const data = parse(event["data"]);
          if (event["event"] !== "end") yield { ...data, since: last ?? "" } as T;
          else if (data.code === "CAUGHT_UP") return;
          else if (STATUS[data.code ?? ""]) throw refusal(STATUS[data.code ?? ""]!, event["data"], new Headers());
        }
        lost = new Unreachable("the stream ended");
      }
    } catch (cause) {
      // Everything else is a lost connection.
      if (cause instanceof Error && "status" in cause) throw cause;
      if (cause instanceof BrokenAnswer) throw cause;
      lost = new Unreachable(`no answer: ${(cause as Error).message}`, { cause });
    } finally {
      silence.end();
    }
    const seconds = pause(retry, Math.max(attempt, 1), lost instanceof Unreachable ? undefined : lost);
    if (seconds === undefined) throw lost;
    await sleep(seconds * 1000);
  }
}

function address(url: string, query: ChangeQuery & NoticeQuery): string {
  const { since, follow = true, backfill } = query;
  const asked = new URL(url);
  asked.searchParams.set("decimals", "string");
  asked.searchParams.set("follow", String(follow));
  if (since) asked.searchParams.set("since", since instanceof Date ? since.toISOString() : since);
  if (backfill) asked.searchParams.set("backfill", "true");
  for (const name of ["symbols", "kinds", "events", "cause"] as const) {
    if (query[name]) asked.searchParams.set(name, query[name].join(","));
  }
  return asked.href;
}

/** Fields of each event. An event ends with an empty line. */
async function* events(body: ReadableStream<Uint8Array>, silence: Silence): AsyncGenerator<Record<string, string>> {
  const decoder = new TextDecoder();
  let text = "";
  for (const reader = body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    silence.interrupt();
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) yield fields(block);
  }
}

function fields(block: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
  }
  return found;
}

function parse(text: string): { code?: string } {
  try {
    return JSON.parse(text) as { code?: string };
  } catch (cause) {
    throw new BrokenAnswer("an event is not JSON", { cause });
  }
}

/** Ends a connection on which nothing comes. */
class Silence {
  readonly #ending = new AbortController();
  #timer = this.#start();

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Something came. */
  interrupt(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  /** Ends the connection, if it is open. */
  end(): void {
    clearTimeout(this.#timer);
    this.#ending.abort();
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => this.#ending.abort(new Error("no heartbeat")), SILENCE * 1000);
  }
}
