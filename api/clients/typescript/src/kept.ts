/** Characters of the largest answer that is kept. */
const LARGEST = 1024 * 1024;

/** An earlier answer. */
export interface KeptAnswer {
  etag: string;
  text: string;
}

/** The newest answers by address, for conditional requests; the least recently used goes first. */
export class Kept {
  readonly #answers = new Map<string, KeptAnswer>();

  constructor(readonly most: number) {}

  find(url: string): KeptAnswer | undefined {
    const answer = this.#answers.get(url);
    if (answer) this.#put(url, answer);
    return answer;
  }

  /** Keeps an answer that has an ETag and is not too large. */
  keep(url: string, etag: string | null, text: string): void {
    if (etag === null || text.length > LARGEST) return;
    this.#put(url, { etag, text });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= this.most) break;
      this.#answers.delete(oldest);
    }
  }

  /** A map remembers the order of insertion, so what is put again becomes the newest. */
  #put(url: string, answer: KeptAnswer): void {
    this.#answers.delete(url);
    this.#answers.set(url, answer);
  }
}
