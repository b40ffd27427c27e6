import { playGroup } from './hostile-cases.ts'

playGroup('metadata and keys')
