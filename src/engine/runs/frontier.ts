/*
 * The last link of a chain, in few reads however long it is. Retention may have deleted the first ones.
 */
import { linkOf } from '../../foundation/ids.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { WorkflowRun } from '../../types/run.ts'

const PROBES = 24
const SPREAD = 16

/** The run of the chain of `runId` that nothing follows; undefined when there is none. */
export async function frontierOf(
  store: Pick<FullStore, 'getRuns'>,
  runId: string
): Promise<WorkflowRun | undefined> {
  const { origin, link: first } = linkOf(runId)
  const idOf = (link: number) => (link === 0 ? origin : `${origin}~${link}`)
  const lastOf = async (links: number[]): Promise<WorkflowRun | undefined> => {
    const runs = await store.getRuns(links.map(idOf))
    return runs.reduce<WorkflowRun | undefined>(
      (last, run) => (!last || linkOf(run.id).link > linkOf(last.id).link ? run : last),
      undefined
    )
  }
  let last = await lastOf([first, first + 1])
  if (!last || linkOf(last.id).link === first) {
    if (last) return last
    last = await lastOf(Array.from({ length: PROBES }, (_, i) => first + 2 ** i))
    if (!last) return undefined
  }
  for (let step = 1; ;) {
    const from = linkOf(last.id).link
    const links = Array.from({ length: SPREAD }, (_, i) => from + step * (i + 1))
    const next = await lastOf(links)
    if (next) {
      last = next
      if (next.id === idOf(links.at(-1)!)) step *= SPREAD
    } else if (step === 1) return last
    else step = Math.max(1, Math.floor(step / SPREAD))
  }
}
