// A reporter of Node's test runner that keeps what the end of the run says: how many tests there
// were, and which file has each of them.
import { writeFileSync } from 'node:fs'

export default async function* report(source) {
  const tests = []
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details?.type !== 'suite')
      counts[data.skip || data.todo ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed'] += 1
    if (data.nesting > 0) continue
    tests.push({ name: data.name, file: data.file, isSkipped: Boolean(data.skip), hasFailed: type === 'test:fail' })
  }
  writeFileSync(process.env.TEST_REPORT, JSON.stringify({ tests, counts }))
  // A reporter has to be a generator.
  yield ''
}
