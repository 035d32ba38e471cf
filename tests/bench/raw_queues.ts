/*
 * What bare queues can do: tasks handed over and taken a second, without anything that is durable around
 * them. A dispatched step over a broker is two such tasks, there and back, and the commits of its run.
 */
import { createRequire } from 'node:module'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { DatabaseLocation } from '../helpers/databases.ts'
import { SLOTS } from './brokers.ts'

interface PgClient {
  connect(): Promise<void>
  query(query: string | { name: string; text: string; values: unknown[] }): Promise<{
    rowCount: number
  }>
  end(): Promise<void>
}

const { Client } = createRequire(import.meta.url)('pg') as {
  Client: new (options: { connectionString: string; options: string }) => PgClient
}

const LANES = 8
const DATA = { some: 'input', of: 'a step', padding: 'x'.repeat(100) }

/** Rows inserted and taken with `FOR UPDATE SKIP LOCKED`, one a statement, over eight connections. */
export async function rawSkipLocked(
  { target, schema }: DatabaseLocation,
  tasks: number
): Promise<number> {
  const clients = Array.from({ length: LANES }, () => {
    return new Client({ connectionString: target, options: `-c search_path=${schema}` })
  })
  await Promise.all(clients.map((client) => client.connect()))
  await clients[0].query('create table raw_queue (id int primary key, input text)')
  const put = 'insert into raw_queue values ($1, $2)'
  const take = `delete from raw_queue where id = (
    select id from raw_queue order by id limit 1 for update skip locked) returning input`
  let next = 0
  let taken = 0
  const lane = async (client: PgClient) => {
    while (next < tasks) {
      await client.query({ name: 'put', text: put, values: [next++, JSON.stringify(DATA)] })
      const { rowCount } = await client.query({ name: 'take', text: take, values: [] })
      taken += rowCount
    }
  }
  const startedAt = performance.now()
  await Promise.all(clients.map(lane))
  while (taken < tasks) {
    const { rowCount } = await clients[0].query({ name: 'take', text: take, values: [] })
    taken += rowCount
  }
  const seconds = (performance.now() - startedAt) / 1000
  await clients[0].query('drop table raw_queue')
  await Promise.all(clients.map((client) => client.end()))
  return tasks / seconds
}

/** Jobs added one at a time by eight lanes, and processed by a worker of this process. */
export async function rawBullMq(url: string, prefix: string, jobs: number): Promise<number> {
  const connection = new Redis(url, { maxRetriesPerRequest: null })
  const queue = new Queue('raw', { connection, prefix })
  const done = Promise.withResolvers<void>()
  let left = jobs
  const work = async () => void (--left === 0 && done.resolve())
  const worker = new Worker('raw', work, { connection, prefix, concurrency: SLOTS })
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])
  let next = 0
  const lane = async () => {
    const nothing = { removeOnComplete: true, removeOnFail: true }
    while (next++ < jobs) await queue.add('job', DATA, nothing)
  }
  const startedAt = performance.now()
  await Promise.all([...Array.from({ length: LANES }, lane), done.promise])
  const seconds = (performance.now() - startedAt) / 1000
  await worker.close()
  await queue.obliterate({ force: true })
  await queue.close()
  connection.disconnect()
  return jobs / seconds
}
