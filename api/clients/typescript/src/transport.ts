import { setTimeout as sleep } from "node:timers/promises";

import { BrokenAnswer, type Refused, refusal, Unreachable, VersionNotServed } from "./errors.js";
import { Kept } from "./kept.js";
import { Newest } from "./newest.js";
import { pause, type Retry } from "./retry.js";

/** Asks until there is an answer, with exact decimals, and conditionally where an answer is kept. */
export class Transport {
  readonly #kept: Kept;
  readonly #newest = new Newest();

  constructor(
    readonly retry: Retry,
    readonly timeout: number,
    keptAnswers: number,
  ) {
    this.#kept = new Kept(keptAnswers);
  }

  /** A `fetch` that answers 200 or throws. */
  fetch = async (asked: Request): Promise<Response> => {
    const url = new URL(asked.url);
    url.searchParams.set("decimals", "string");
    const { method, headers } = asked;
    const body = method === "POST" ? await asked.text() : null;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(url.href, { method, headers, body });
      if (typeof outcome === "string") return new Response(outcome);
      // The service lost its newest data, for example in a restore.
      if (outcome instanceof VersionNotServed && this.#newest.forget()) continue;
      const refused = outcome instanceof Unreachable ? undefined : outcome;
      const seconds = pause(this.retry, attempt, refused);
      if (seconds === undefined) throw outcome;
      await sleep(seconds * 1000);
    }
  };

  /** The text of a success, or what may pass by waiting. An answer that broke off is not asked for again unasked. */
  async #attempt(url: string, asked: RequestInit): Promise<string | Refused | Unreachable> {
    const kept = this.#kept.find(url);
    const headers = new Headers(asked.headers);
    if (kept) headers.set("if-none-match", kept.etag);
    if (this.#newest.version) headers.set("if-min-version", this.#newest.version);
    let response: Response;
    try {
      response = await fetch(url, { ...asked, headers, signal: AbortSignal.timeout(this.timeout * 1000) });
    } catch (cause) {
      return new Unreachable(`no answer: ${reason(cause)}`, { cause });
    }
    let text: string;
    try {
      text = await response.text();
    } catch (cause) {
      throw new BrokenAnswer(`the answer broke off: ${reason(cause)}`, { cause });
    }
    this.#newest.see(response.headers.get("etag"));
    if (response.status === 304 && kept) return kept.text;
    if (response.status !== 200) return refusal(response.status, text, response.headers);
    this.#kept.keep(url, response.headers.get("etag"), text);
    return text;
  }
}

function reason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}
