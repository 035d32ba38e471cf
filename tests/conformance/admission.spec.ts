import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import { runAdmissionBackendContract } from '../../src/testing/conformance.ts'

runAdmissionBackendContract(
  'InMemoryAdmissionBackend',
  (clock) => new InMemoryAdmissionBackend({ clock })
)
