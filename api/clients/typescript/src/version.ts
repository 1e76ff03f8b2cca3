/** The client's own version, as its user agent says it; the package's is the same. */
export const VERSION = "0.1.0";
