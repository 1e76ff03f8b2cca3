// A quote as one would write it with Fastify and pg: key, counter and row, one statement after the other.
//
//   node server.mjs DATABASE_URL PORT
import cluster from "node:cluster";
import { createHash } from "node:crypto";
import Fastify from "fastify";
import pg from "pg";

const WORKERS = 2;
const KEY = `select a.id, t.monthly_quota
  from accounts.api_keys k join accounts.accounts a on a.id = k.account_id join accounts.tiers t using (tier)
  where k.hash = $1 and k.revoked_at is null`;
const COUNT = "update accounts.limiter set used = used + 1 where account_id = $1 returning used";
const QUOTE = "select to_json(q) as quote from read_g1.quotes q where q.symbol = $1";

const [database, port] = process.argv.slice(2);

if (cluster.isPrimary) {
  for (let worker = 0; worker < WORKERS; worker += 1) cluster.fork();
  process.on("SIGTERM", () => process.exit(0));
} else {
  const pool = new pg.Pool({ connectionString: database, max: 16 / WORKERS });
  const app = Fastify();
  app.get("/v1/stocks/:symbol/quote", async (request, reply) => {
    const key = (request.headers.authorization ?? "").replace("Bearer ", "");
    const hash = createHash("sha256").update(key).digest();
    const known = await pool.query({ name: "key", text: KEY, values: [hash] });
    if (known.rowCount === 0) return reply.code(401).send();
    const { id, monthly_quota: quota } = known.rows[0];
    const counted = await pool.query({ name: "count", text: COUNT, values: [id] });
    if (BigInt(counted.rows[0].used) > BigInt(quota)) return reply.code(429).send();
    const found = await pool.query({ name: "quote", text: QUOTE, values: [request.params.symbol] });
    return found.rowCount === 0 ? reply.code(404).send() : { data: found.rows[0].quote };
  });
  await app.listen({ host: "127.0.0.1", port: Number(port) });
}
