import { playGroup } from './hostile-cases.ts'

playGroup('refreshes and signing out')
