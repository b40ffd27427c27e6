interface Options {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly limitMs: number
}

export function runTests(entry: string, options: Options): Promise<{ readonly isFailed: boolean; readonly ms: number }>
export function endTests(): void
