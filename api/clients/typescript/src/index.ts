/** Client of the dividend data service. */
export type { Change, ChangeKind, ChangeQuery, Notice, NoticeQuery } from "./changes.js";
export * from "./client.js";
export type { components, Decimal, paths } from "./document.js";
export * from "./errors.js";
export type { Retry } from "./retry.js";
export { VERSION } from "./version.js";
