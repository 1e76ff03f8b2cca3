/** Everything this client throws. */
export class DdsError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** No key was given and the environment has none. */
export class MissingKey extends DdsError {}

/** The service did not answer, however often it was asked. */
export class Unreachable extends DdsError {}

/** An answer broke off, or is not what the service's document promises. No row of it may be used. */
export class BrokenAnswer extends DdsError {}

/** What a refusal says; which members there are depends on `code`. */
export interface RefusalBody {
  error?: string;
  code?: string;
  [member: string]: unknown;
}

/** The service refused. */
export class Refused extends DdsError {
  /** The service's word for programs; undefined where it has none (404) or did not answer itself. */
  readonly code: string | undefined;
  /** Names the call to the service's operator. */
  readonly requestId: string | null;
  /** Seconds to wait before the next call; undefined when the service named none. */
  readonly retryAfter: number | undefined;

  constructor(
    readonly status: number,
    readonly body: RefusalBody,
    headers: Headers,
  ) {
    super(`${status} ${body.code ?? ""}: ${body.error ?? "no reason given"}`.replace(" :", ":"));
    this.code = body.code;
    this.requestId = headers.get("x-request-id");
    const after = headers.get("retry-after");
    this.retryAfter = after !== null && /^[0-9]+$/.test(after) ? Number(after) : undefined;
  }
}

/** The key is missing, wrong or expired. */
export class InvalidApiKey extends Refused {}
/** The account's tier does not include this; `body` has `current_tier`, `required_feature` and `upgrade_url`. */
export class FeatureNotAvailable extends Refused {}
/** More calls a minute than the account has, after as many tries as the retry policy allows. */
export class RateLimited extends Refused {}
/** The month's calls are used up; `body` has `usage`. It is never waited for. */
export class QuotaExceeded extends Refused {}
/** The account has as many open change streams as its plan allows, after as many tries as the retry policy allows. */
export class TooManyStreams extends Refused {}
/** A parameter is wrong; `body` has `param`, `allowed` and all `errors`. */
export class InvalidParameter extends Refused {}
/** Several listings have the identifier; `body` has their symbols, markets and currencies as `candidates`. */
export class AmbiguousSymbol extends InvalidParameter {}
/** The cursor is damaged or belongs to another request. */
export class InvalidCursor extends Refused {}
/** There is no such stock, fund or sector. */
export class NotFound extends Refused {}
/** The service only reads. */
export class MethodNotAllowed extends Refused {}
/** The request is longer than the service reads; give fewer symbols a call. */
export class HeadTooLarge extends Refused {}
/** The service has no data as new as `min_version`. */
export class VersionNotServed extends Refused {}
/** The service failed; `requestId` names the call to its operator. */
export class Internal extends Refused {}
/** The service cannot answer now, after as many tries as the retry policy allows. */
export class ServiceUnavailable extends Refused {}

/** These answers may have no code: a proxy's page, or the short reply to a head that is too large. */
const BY_STATUS: Record<number, typeof Refused> = { 404: NotFound, 414: HeadTooLarge, 431: HeadTooLarge };
const BY_CODE: Record<string, typeof Refused> = {
  INVALID_API_KEY: InvalidApiKey,
  FEATURE_NOT_AVAILABLE: FeatureNotAvailable,
  RATE_LIMITED: RateLimited,
  QUOTA_EXCEEDED: QuotaExceeded,
  TOO_MANY_STREAMS: TooManyStreams,
  INVALID_PARAMETER: InvalidParameter,
  AMBIGUOUS_SYMBOL: AmbiguousSymbol,
  INVALID_CURSOR: InvalidCursor,
  METHOD_NOT_ALLOWED: MethodNotAllowed,
  VERSION_NOT_SERVED: VersionNotServed,
  INTERNAL: Internal,
  SERVICE_UNAVAILABLE: ServiceUnavailable,
};

/** The error for an answer that is no success. */
export function refusal(status: number, text: string, headers: Headers): Refused {
  const body = object(text);
  const Kind = BY_STATUS[status] ?? BY_CODE[body.code ?? ""] ?? Refused;
  return new Kind(status, body, headers);
}

function object(text: string): RefusalBody {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as RefusalBody) : {};
  } catch {
    return {};
  }
}
