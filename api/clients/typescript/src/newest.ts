const TAG = /^W\/"(g[0-9]+\.[0-9]+\.([0-9]+))-/;

/** The newest data version of the answers so far, read from entity tags. A later call asks for data that is not older. */
export class Newest {
  /** The value of If-Min-Version; undefined before the first answer. */
  version: string | undefined;
  #position = -1;

  /** Reads the version in the entity tag of an answer. */
  see(etag: string | null): void {
    const found = TAG.exec(etag ?? "");
    if (!found || Number(found[2]) <= this.#position) return;
    this.version = found[1];
    this.#position = Number(found[2]);
  }

  /** Forgets the version, which the service lost. False if there was none. */
  forget(): boolean {
    const known = this.version !== undefined;
    this.version = undefined;
    this.#position = -1;
    return known;
  }
}
