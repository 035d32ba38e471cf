/*
 * Search attributes, typed: what a declared schema makes of a run's stored attributes. Lenient, since
 * history may be older than the schema: what does not fit reads as nothing.
 */
import {
  checkStandardSync,
  type InferOutput,
  type StandardSchemaV1,
} from '../foundation/standard_schema.ts'
import { DurableError } from '../foundation/failure.ts'
import type { SearchAttributes, WorkflowRun } from '../types/run.ts'
import type { WorkflowClass } from '../types/workflow.ts'

/** A Standard Schema with a flat output; must validate synchronously. */
export type SearchAttributesSchema = StandardSchemaV1<unknown, SearchAttributes>

/** The attributes a schema describes. */
export type InferSearchAttributes<S extends StandardSchemaV1> = InferOutput<S>

/** The attributes a workflow class declares; any without a schema. */
export type SearchAttributesOf<C> = C extends {
  workflow?: { searchAttributes?: infer S }
}
  ? S extends StandardSchemaV1
    ? InferOutput<S>
    : SearchAttributes
  : SearchAttributes

type Attributed = Pick<WorkflowRun, 'searchAttributes'> | null | undefined

/**
 * The attributes of a run, or a bare record of them, through a schema. `{}` for a missing run and for
 * attributes that the schema refuses. Throws `DurableError` for a schema that validates asynchronously.
 */
export function readSearchAttributes<S extends StandardSchemaV1>(
  schema: S,
  run: Attributed
): InferOutput<S> {
  const verdict = checkStandardSync(schema, run?.searchAttributes ?? {})
  if (!verdict) {
    throw new DurableError('a searchAttributes schema must validate synchronously', {
      code: 'invalid_argument',
    })
  }
  return verdict.ok ? verdict.value : ({} as InferOutput<S>)
}

/** The attributes of a run of this workflow class, typed and read through its schema. */
export function attributesOf<C extends WorkflowClass>(
  workflow: C,
  run: Attributed
): SearchAttributesOf<C> {
  const schema = workflow.workflow?.searchAttributes
  const attributes = schema ? readSearchAttributes(schema, run) : (run?.searchAttributes ?? {})
  return attributes as SearchAttributesOf<C>
}
