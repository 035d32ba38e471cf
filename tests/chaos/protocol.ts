/*
 * What the play says to a member, and what it answers.
 */
import type { DatabaseLocation } from '../helpers/databases.ts'
import type { Carrier } from './carriers.ts'
import type { Deploy } from './workflows.ts'

/** A worker runs steps and nothing else. */
export type Role = 'engine' | 'worker'

export interface MemberOptions {
  name: string
  role: Role
  carrier: Carrier
  location: DatabaseLocation
  deploy: Deploy
  /** How far its clock is ahead of the others', in ms. */
  skewMs: number
  leaseMs: number
}

/** Verbs of the engine that the outside uses. */
export type Verb = 'start' | 'signal' | 'update' | 'publishEvent' | 'completeTask' | 'cancel'

export interface Request {
  id: number
  verb: Verb
  args: unknown[]
}

export interface Answer {
  id: number
  result?: unknown
  error?: { name: string; message: string }
}

export type ToMember = Request | 'stop'
export type FromMember = Answer | 'ready'
