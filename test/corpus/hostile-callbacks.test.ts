import { test } from 'node:test'
import { everyCaseIsInOneGroup, playGroup } from './hostile-cases.ts'

playGroup('callbacks and cookies')

test('Each case of the misbehaving provider is in one group', () => everyCaseIsInOneGroup())
