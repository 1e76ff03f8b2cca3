import createFetchClient, { type FetchOptions } from "openapi-fetch";

import { type Change, type ChangeQuery, type Connection, follow, type Notice, type NoticeQuery } from "./changes.js";
import type { paths } from "./document.js";
import { BrokenAnswer, MissingKey } from "./errors.js";
import { PATIENT, type Retry } from "./retry.js";
import { Transport } from "./transport.js";
import { VERSION } from "./version.js";

interface InJson {
  responses: { 200: { content: { "application/json": unknown } } };
}

/** A path of the service with an answer in JSON, as the OpenAPI document writes it. */
export type Path = { [P in keyof paths]: paths[P] extends { get: InJson } ? P : never }[keyof paths];
/** A path that reads a body. */
export type PostPath = { [P in keyof paths]: paths[P] extends { post: InJson } ? P : never }[keyof paths];
/** The parameters of a path: `{ params: { path: {…}, query: {…} } }`. */
export type Options<P extends Path> = FetchOptions<paths[P]["get"]>;
/** The answer of a path. */
export type Answer<P extends Path> =
  paths[P]["get"]["responses"][200]["content"] extends { "application/json": infer Body } ? Body : never;
/** The body and the parameters of a path that reads a body: `{ body: {…}, params: { query: {…} } }`. */
export type PostOptions<P extends PostPath> = FetchOptions<paths[P]["post"]>;
/** The answer of a path that reads a body. */
export type PostAnswer<P extends PostPath> =
  paths[P]["post"]["responses"][200]["content"] extends { "application/json": infer Body } ? Body : never;
/** The paths whose answers come in pages. */
export type ListPath = { [P in Path]: Answer<P> extends Page ? P : never }[Path];
/** A row of a list. */
export type Row<P extends ListPath> = Answer<P> extends { data: (infer Row)[] } ? Row : never;

/** Options may be left out where the path needs none. */
type MaybeOptions<P extends Path> = Record<never, never> extends Options<P> ? [options?: Options<P>] : [options: Options<P>];

interface Page {
  data: unknown[];
  meta: { count: number; has_more: boolean; next_cursor?: string | null };
}

export interface Settings {
  /** Default: `DDS_API_KEY` of the environment. */
  key?: string;
  /** Base address, with or without `/v1`. Default: `DDS_API_URL` of the environment, else where `cargo stack` serves. */
  url?: string;
  retry?: Partial<Retry>;
  /** Seconds one try may take. Default 30. */
  timeout?: number;
  /** How many answers are kept for conditional requests. Default 64. */
  keptAnswers?: number;
}

/** Asks the service. Decimals are text in every answer. */
export class Client {
  readonly #http: ReturnType<typeof createFetchClient<paths>>;
  readonly #stream: Connection;

  constructor({ key, url, retry, timeout = 30, keptAnswers = 64 }: Settings = {}) {
    const secret = key ?? process.env["DDS_API_KEY"];
    if (!secret) throw new MissingKey("give a key, or set DDS_API_KEY");
    const base = url ?? process.env["DDS_API_URL"] ?? "http://127.0.0.1:8080";
    const patience = { ...PATIENT, ...retry };
    const transport = new Transport(patience, timeout, keptAnswers);
    // A base may end in /v1, as the service's published address does; every path begins with it.
    const baseUrl = base.replace(/\/+$/, "").replace(/\/v1$/, "");
    const headers = {
      authorization: `Bearer ${secret}`,
      "user-agent": `dds-typescript/${VERSION} (node ${process.versions.node})`,
    };
    this.#stream = { url: `${baseUrl}/v1/changes`, headers, retry: patience };
    this.#http = createFetchClient<paths>({
      baseUrl,
      fetch: transport.fetch,
      querySerializer: { array: { style: "form", explode: false } },
      headers: { accept: "application/json", ...headers },
    });
  }

  /** The answer of a path. Throws a `DdsError`. */
  async get<P extends Path>(path: P, ...[options]: MaybeOptions<P>): Promise<Answer<P>> {
    return parse((await this.#get(path, options)) as string) as Answer<P>;
  }

  /** The answer of a path that reads a body. Throws a `DdsError`. */
  async post<P extends PostPath>(path: P, options: PostOptions<P>): Promise<PostAnswer<P>> {
    const ask = this.#http.POST as (path: PostPath, options: object) => Promise<{ data?: unknown }>;
    return parse((await ask(path, { ...options, parseAs: "text" })).data as string) as PostAnswer<P>;
  }

  /** Any path with any query: what `get` leaves out, like `fields`. */
  async raw(path: string, query: Record<string, unknown> = {}): Promise<unknown> {
    return parse((await this.#get(path as Path, { params: { query } })) as string);
  }

  /** The pages of a list. Throws `BrokenAnswer` for a page that is not whole; it never ends early in silence. */
  async *pages<P extends ListPath>(path: P, ...[options]: MaybeOptions<P>): AsyncGenerator<Answer<P>, void> {
    const params = (options as { params?: { query?: { cursor?: string } } } | undefined)?.params;
    let cursor: string | null | undefined = params?.query?.cursor;
    do {
      const query = { ...params?.query, ...(cursor && { cursor }) };
      const page = parse((await this.#get(path, { ...options, params: { ...params, query } })) as string) as Answer<P>;
      cursor = nextCursor(page as Page, cursor);
      yield page;
    } while (cursor !== null);
  }

  /** The rows of all pages of a list. */
  async *rows<P extends ListPath>(path: P, ...options: MaybeOptions<P>): AsyncGenerator<Row<P>, void> {
    for await (const page of this.pages(path, ...options)) yield* (page as Page).data as Row<P>[];
  }

  /** Changes of served rows as they happen, each once. After a lost connection the stream continues. */
  changes(query: ChangeQuery = {}): AsyncGenerator<Change, void> {
    return follow(this.#stream, query);
  }

  /** What happens to securities, for example `{ events: ["raised", "cut"] }`; by default every event. */
  notices(query: NoticeQuery = {}): AsyncGenerator<Notice, void> {
    return follow(this.#stream, { ...query, kinds: ["notices"] });
  }

  async #get(path: Path, options: object | undefined): Promise<unknown> {
    const ask = this.#http.GET as (path: Path, options: object) => Promise<{ data?: unknown }>;
    return (await ask(path, { ...options, parseAs: "text" })).data;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BrokenAnswer("the answer is not what the document promises: no JSON", { cause });
  }
}

/** Where the walk goes on after a page that `cursor` led to; null at the end. */
function nextCursor({ data, meta }: Page, cursor: string | null | undefined): string | null {
  if (meta.count !== data.length) {
    throw new BrokenAnswer(`a page of ${data.length} rows says it has ${meta.count}`);
  }
  if (!meta.has_more) return null;
  if (!meta.next_cursor || meta.next_cursor === cursor) {
    throw new BrokenAnswer("a page says that more follow, and not where");
  }
  return meta.next_cursor;
}
