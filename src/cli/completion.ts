import { version } from '../core/version.ts'
import { CallFault, reader, readOptions, takeNone } from './command.ts'
import { help, overview } from './help.ts'

/** The shells that have a completion. */
const shells = ['bash', 'zsh', 'fish'] as const

interface OfferedOption {
  /** Without its dashes. */
  readonly name: string
  readonly takesValue: boolean
}

interface OfferedCommand {
  readonly name: string
  readonly summary: string
  readonly options: readonly OfferedOption[]
  /** What may follow the command: `list` of sessions. */
  readonly words: readonly string[]
}

/** Reads the arguments of `gatehouse completion`. */
export const readCompletionCall = reader((argv) => {
  const [wanted = '', ...more] = readOptions(argv, {}).positionals
  takeNone(more)
  const shell = shells.find((each) => each === wanted)
  if (shell === undefined && wanted !== 'man') throw new CallFault('name bash, zsh, fish or man')
  return async ({ out }) => (out(shell === undefined ? manualPage() : completionScript(shell)), 0)
})

/** What the help texts say: the commands of the overview, with their options. */
export function offeredCommands(): readonly OfferedCommand[] {
  const rows = [...overview.matchAll(/^ {2}gatehouse (\S+)(.*)$/gm)]
  return rows.map(([, name = '', rest = '']) => {
    const [, summary = name] = /.* {2,}(\S.*)$/.exec(rest) ?? []
    return { name, summary, options: optionsOf(help[name] ?? ''), words: wordsAfter(name) }
  })
}

function wordsAfter(command: string): readonly string[] {
  if (command === 'completion') return [...shells, 'man']
  if (command === 'help') return Object.keys(help)
  if (command === 'sessions') return ['list', 'show', 'end']
  // The programs of the list in its help text.
  if (command === 'import')
    return [...(help[command] ?? '').matchAll(/^ {2}([a-z]\S+) {2,}\S/gm)].map(([, name = '']) => name)
  return []
}

/** The options of the usage, and those that only the list below it has: `--out, -o`. */
function optionsOf(text: string): readonly OfferedOption[] {
  const [usage = ''] = text.split('\n\n')
  const takesValue = (option: string) => new RegExp(`(?<![\\w-])${option} [^-\\s[\\]|]`).test(usage)
  const used = [...usage.matchAll(/--([a-z][a-z-]*)/g)].map(([, name = '']) => [name, takesValue(`--${name}`)] as const)
  const listed = [...text.matchAll(/^ {2}--([a-z][a-z-]*), (-\w)/gm)].map(
    ([, name = '', short = '']) => [name, takesValue(short)] as const,
  )
  const formats = text.includes('\n  --format ') ? [['format', true] as const] : []
  return [...new Map([...formats, ...listed, ...used])].map(([name, value]) => ({ name, takesValue: value }))
}

/** The script that completes commands, options and files in a shell. */
function completionScript(shell: (typeof shells)[number]): string {
  const commands = offeredCommands()
  switch (shell) {
    case 'bash':
      return bash(commands)
    case 'zsh':
      return zsh(commands)
    case 'fish':
      return fish(commands)
  }
}

const dashed = ({ options }: OfferedCommand) => options.map(({ name }) => `--${name}`).join(' ')
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

function bash(commands: readonly OfferedCommand[]): string {
  const names = commands.map(({ name }) => name).join(' ')
  const cases = commands.map(
    (command) => `    ${command.name}) options='${dashed(command)}'; words='${command.words.join(' ')}' ;;`,
  )
  return `# Completion of gatehouse for bash: source <(gatehouse completion bash)
_gatehouse() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command='' options='' words='${names}' each
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${names} " in *" $each "*) command=$each; break ;; esac
  done
  case $command in
${cases.join('\n')}
  esac
  COMPREPLY=()
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ $before != -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
  [[ \${#COMPREPLY[@]} -gt 0 || $word == -* ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _gatehouse gatehouse
`
}

function zsh(commands: readonly OfferedCommand[]): string {
  return `#compdef gatehouse
# Completion of gatehouse for zsh: source <(gatehouse completion zsh)
_gatehouse() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  local command='' each
  for each in "\${words[@]:1:$((CURRENT - 2))}"; do
    (( \${commands[(I)$each:*]} )) && { command=$each; break }
  done
  case $command in
    '') _describe command commands ;;
${commands.map((command) => `    ${command.name}) [[ $words[CURRENT] == -* ]] && compadd -- ${dashed(command)} || { compadd -- ${command.words.join(' ')}; _files } ;;`).join('\n')}
  esac
}
if [[ $funcstack[1] == _gatehouse ]]; then _gatehouse "$@"; else compdef _gatehouse gatehouse; fi
`
}

function fish(commands: readonly OfferedCommand[]): string {
  const rows = commands.flatMap(({ name, summary, options, words }) => [
    `complete -c gatehouse -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
    ...(words.length > 0
      ? [`complete -c gatehouse -n '__fish_seen_subcommand_from ${name}' -a '${words.join(' ')}'`]
      : []),
    ...options.map(
      (option) =>
        `complete -c gatehouse -n '__fish_seen_subcommand_from ${name}' -l ${option.name}${option.takesValue ? ' -r' : ''}`,
    ),
  ])
  return `# Completion of gatehouse for fish: gatehouse completion fish | source\n${rows.join('\n')}\n`
}

/** The help texts as a manual page: `gatehouse(1)`. */
function manualPage(): string {
  const sections = Object.entries(help).map(([name, text]) => `.SS ${name}\n.nf\n${roff(text.trimEnd())}\n.fi\n`)
  const [title = '', ...rest] = overview.trimEnd().split('\n')
  return `.TH GATEHOUSE 1 "" "Gatehouse ${version}"
.SH NAME
gatehouse \\- ${roff(title.replace(/^gatehouse: /, ''))}
.SH SYNOPSIS
.nf
${roff(rest.join('\n').replaceAll(/^ {2}/gm, '').trim())}
.fi
.SH COMMANDS
${sections.join('')}`
}

/** Text that roff prints as it is (groff_char(7)). */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')
}
