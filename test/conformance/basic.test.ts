import { test } from 'node:test'
import { basicModules, runModule } from './basic-modules.ts'

// Re-enacted from the modules of the OpenID Foundation's conformance suite, under their names:
// oidcc-client-basic-certification-test-plan.
for (const module of basicModules) test(module.name, async (t) => void (await runModule(t, module)))
