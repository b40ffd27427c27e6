import { playGroup } from './hostile-cases.ts'

playGroup('token and userinfo endpoints')
playGroup('claims')
