/*
 * The admission contract notices: a backend that breaks a promise fails the case of that promise, and there is
 * such a backend for every case.
 */
import { runAdmissionBackendContract } from '../../../src/testing/conformance.ts'
import { ADMISSION_CASES } from '../../../src/testing/contracts/admission.ts'
import { runAdmissionCase } from '../../../src/testing/contracts/admission/bench.ts'
import { caseOf, testTeeth, verdictOfCase } from '../../helpers/teeth.ts'
import { LEASES, TOGETHER } from './broken_fleets.ts'
import { CAPS, LINES, NEWS } from './broken_queues.ts'
import { inMemory } from './defect.ts'

runAdmissionBackendContract('admission contract | a fleet in memory', (clock) => inMemory(clock))

testTeeth({
  contract: 'admission contract',
  defects: [...CAPS, ...LINES, ...NEWS, ...TOGETHER, ...LEASES],
  cases: ADMISSION_CASES.map(({ title }) => title),
  verdictOf: async (title, defect) => {
    const found = caseOf(ADMISSION_CASES, title)
    return verdictOfCase((note) =>
      runAdmissionCase(found, (clock) => inMemory(clock, defect), note)
    )
  },
})
