import { expect, test } from 'vitest'
import { includeNames } from '../src/cache/includeNames.js'

test.each<[string, string, string[] | undefined]>([
  ['brackets and quotation marks', '#include <a.h>\n#include "b c.h"\n', ['a.h', 'b c.h']],
  ['blanks of all kinds and comments', '#\t/* one\n */ /**/\f include_next\v/*"*/\r"a.h"', ['a.h']],
  ['a digraph', '%:include "a.h"', ['a.h']],
  ['no blank at all', '#include"a.h"', ['a.h']],
  [
    'a splice in each word',
    '#inc\\\nlude "a.h"\n#include "b\\\r\n.h"\n#if __has_\\\ninclude(<c.h>)',
    ['a.h', 'b.h', 'c.h'],
  ],
  ['a splice in a comment that hides nothing', '/\\\n/ # include\\\n "a.h"', ['a.h']],
  ['questions', '#if __has_include(<a.h>) || __has_include_next/**/( "b.h")', ['a.h', 'b.h']],
  ['includes behind what looks like a comment', 'const char* a = "/*";\n#include "a.h"\n// "*/"', ['a.h']],
  ['includes in comments', '/* #include "a.h" */\n// # include "b.h"', ['a.h', 'b.h']],
  ['a test for the question itself', '#ifdef __has_include\n#if defined ( __has_include)&&defined __has_include', []],
  ['other words', '#\n/* MIT */\n__constant__ int included;\n#included\n#define include_all\nint include;', []],
  ['a macro as the file', '#include H', undefined],
  ['a macro as the file in question', '#if __has_include(H)', undefined],
  ['another name for the question', '#define HAS __has_include\n#if HAS("a.h")', undefined],
  ['a function for the question', '#define HAS(x) __has_include(x)', undefined],
  ['an include that does not end', '#include "a.h\n"', undefined],
  ['an empty name', '#include <>', undefined],
  ['nothing', '', []],
])('names of included files are found: %s', (_what, source, names) => {
  expect(includeNames(source)).toEqual(names)
})

test.each([
  '#',
  '# /*',
  '#/**/',
  '# /* */ /*',
  '%:\\\n/*',
  '__has_include/*',
  '__has_include( /*',
  '#include <',
  '#include "a" ',
  '#include /*',
  ' ',
  '\\ ',
  '\\\r',
  '\\\n',
  '// issue #\n/* licence */\n',
])('finding included files takes linear time for repeated %j', (part) => {
  const started = process.cpuUsage()
  const text = part.repeat(300_000)
  for (const source of [text, `# ${text} include`, `#/*${text}*/${text}include`]) includeNames(source)
  expect(process.cpuUsage(started).user).toBeLessThan(5_000_000)
})
