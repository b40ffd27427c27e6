import { playGroup } from './hostile-cases.ts'

playGroup('ID Tokens')
