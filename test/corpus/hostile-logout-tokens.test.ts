import { playGroup } from './hostile-cases.ts'

playGroup('Logout Tokens')
