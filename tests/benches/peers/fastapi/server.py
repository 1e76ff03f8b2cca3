"""A quote as one would write it with FastAPI and asyncpg: key, counter and row, one statement after the other.

DATABASE=postgres://... uvicorn server:app --workers 2 --port PORT
"""

import hashlib
import os
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, Header, Response

WORKERS = 2
KEY = """select a.id, t.monthly_quota
  from accounts.api_keys k join accounts.accounts a on a.id = k.account_id join accounts.tiers t using (tier)
  where k.hash = $1 and k.revoked_at is null"""
COUNT = "update accounts.limiter set used = used + 1 where account_id = $1 returning used"
QUOTE = "select to_json(q)::text from read_g1.quotes q where q.symbol = $1"


@asynccontextmanager
async def pooled(app: FastAPI):
    app.state.pool = await asyncpg.create_pool(os.environ["DATABASE"], min_size=1, max_size=16 // WORKERS)
    yield
    await app.state.pool.close()


app = FastAPI(lifespan=pooled)


@app.get("/v1/stocks/{symbol}/quote")
async def quote(symbol: str, authorization: str = Header("")) -> Response:
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).digest()
    async with app.state.pool.acquire() as connection:
        known = await connection.fetchrow(KEY, digest)
        if known is None:
            return Response(status_code=401)
        used = await connection.fetchval(COUNT, known["id"])
        if used > known["monthly_quota"]:
            return Response(status_code=429)
        found = await connection.fetchval(QUOTE, symbol)
    if found is None:
        return Response(status_code=404)
    return Response('{"data":' + found + "}", media_type="application/json")
