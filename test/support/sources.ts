export const isCode = (path: string): boolean => /\.[cm]?[jt]sx?$/.test(path)

/**
 * Returns the imports of a source, of every kind: `import`, `export … from`, `import()`,
 * `import('…').Type`, `require()`. `undefined` is an import with a computed module.
 */
export function importsOf(source: string): (string | undefined)[] {
  const { skeleton, texts } = skeletonOf(source)
  const found: (string | undefined)[] = []
  for (const [, index] of skeleton.matchAll(/(?<![\w$.])(?:from|import|(?:import|require)\s*\()\s*"(\d+)"/g))
    found.push(texts[Number(index)])
  for (const _ of skeleton.matchAll(/(?<![\w$.])(?:import|require)\s*\((?!\s*"\d+"\s*[,)])/g)) found.push(undefined)
  return found
}

/**
 * Returns the code without comments and regular expressions. The index of each text replaces the
 * text.
 */
export function skeletonOf(source: string): { skeleton: string; texts: string[] } {
  const texts: string[] = []
  const keep = (text: string) => `"${texts.push(text) - 1}"`
  const token =
    /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|`|\/(?![/*])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|[^]/y
  const depths: number[] = []
  let skeleton = ''
  let braces = 0
  let at = 0

  /** Reads the text of a template up to its end or the next `${`. */
  const template = () => {
    const part = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{|$)/y
    part.lastIndex = at
    const [whole = '', end = ''] = part.exec(source) ?? []
    at += whole.length
    if (end === '${') {
      depths.push(braces)
      skeleton += '"" + ('
    } else skeleton += keep(whole.slice(0, whole.length - end.length))
  }

  while (at < source.length) {
    token.lastIndex = at
    let [text = ''] = token.exec(source) ?? []
    const isComment = text.startsWith('//') || text.startsWith('/*')
    const isPattern = text.length > 1 && text.startsWith('/') && !isComment
    // A slash after a value divides.
    if (
      isPattern &&
      /[\w$)\]"]\s*$/.test(skeleton) &&
      !/\b(?:return|typeof|case|in|of|void|yield|await)\s*$/.test(skeleton)
    )
      text = '/'
    at += text.length
    if (isComment) skeleton += ' '
    else if (text.length > 1 && text.startsWith('/')) skeleton += '/./'
    else if (text.startsWith("'") || text.startsWith('"')) skeleton += keep(text.slice(1, -1))
    else if (text === '`') template()
    else if (text === '}' && depths.at(-1) === braces) {
      depths.pop()
      skeleton += ') + '
      template()
    } else {
      if (text === '{') braces += 1
      if (text === '}') braces -= 1
      skeleton += text
    }
  }
  return { skeleton, texts }
}
