import { playGroup } from './hostile-cases.ts'

playGroup('logout tokens')
