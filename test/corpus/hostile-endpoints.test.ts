import { playGroup } from './hostile-cases.ts'

playGroup('token and UserInfo endpoints')
playGroup('claims')
