import { test } from 'node:test'
import { everyCaseIsInOneGroup, playGroup } from './hostile-cases.ts'

playGroup('callbacks and what the browser keeps')

test('each case of the provider that misbehaves is in one group', () => everyCaseIsInOneGroup())
