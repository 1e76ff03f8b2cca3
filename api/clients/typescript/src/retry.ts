import { QuotaExceeded, type Refused } from "./errors.js";

/** How patient a client is. Only calls that got no answer, 429 and 503 are tried again. */
export interface Retry {
  /** Tries of one call at most, the first included. */
  attempts: number;
  /** Seconds up to which the first pause is drawn; each further one is drawn from twice as many. */
  base: number;
  /** Seconds a pause lasts at most. A service that asks for more is not waited for. */
  longest: number;
}

export const PATIENT: Retry = { attempts: 8, base: 0.25, longest: 60 };

const AGAIN = [429, 503];

/**
 * Seconds to wait after the `attempt`th try (from 1), or undefined when there is no further one. `refused` is the
 * service's answer, undefined when there was none.
 */
export function pause(retry: Retry, attempt: number, refused?: Refused): number | undefined {
  if (attempt >= retry.attempts) return undefined;
  const jitter = Math.random() * Math.min(retry.longest, retry.base * 2 ** (attempt - 1));
  if (refused === undefined) return jitter;
  if (!AGAIN.includes(refused.status) || refused instanceof QuotaExceeded) return undefined;
  const asked = refused.retryAfter;
  if (asked === undefined) return jitter;
  // Never sooner than asked; a little later, so that clients who were refused together do not return together.
  return asked > retry.longest ? undefined : asked + Math.min(jitter, 1);
}
