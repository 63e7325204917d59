import { type Diagnostic, parseLog } from '@shoal/nvrtc/basics'
import { expect, test } from 'vitest'

test.each<[string, string, Diagnostic[]]>([
  [
    'an error, with its line and its column',
    'axpy.cu(3): error: identifier "b" is undefined\n  \tx[i] *= b;\n  \t        ^\n\n1 error detected in the compilation of "axpy.cu".\n',
    [
      {
        severity: 'error',
        message: 'identifier "b" is undefined',
        file: 'axpy.cu',
        line: 3,
        column: 10,
        text: '\tx[i] *= b;',
      },
    ],
  ],
  [
    'a warning with a number, and the remark below it',
    'a b(c).cu(12): warning #177-D: variable "u" was declared but never referenced\n    int u;\n        ^\n\nRemark: The warnings can be suppressed with "-diag-suppress <warning-number>"\n',
    [
      {
        severity: 'warning',
        number: 177,
        message: 'variable "u" was declared but never referenced',
        file: 'a b(c).cu',
        line: 12,
        column: 7,
        text: '  int u;',
      },
      { severity: 'remark', message: 'The warnings can be suppressed with "-diag-suppress <warning-number>"' },
    ],
  ],
  [
    'a message at the end of a log that no line end closes',
    'a.cu(1): error: expected a ";"\n  int x\n      ^',
    [{ severity: 'error', message: 'expected a ";"', file: 'a.cu', line: 1, column: 5, text: 'int x' }],
  ],
  [
    'a message of several lines',
    'k.cu(2): error: no instance of function "f" matches the argument list\n            argument types are: (int)\n  f(1);\n  ^\n          detected during instantiation of "void g<T>()" at line 5\n\n',
    [
      {
        severity: 'error',
        message:
          'no instance of function "f" matches the argument list\nargument types are: (int)\ndetected during instantiation of "void g<T>()" at line 5',
        file: 'k.cu',
        line: 2,
        column: 1,
        text: 'f(1);',
      },
    ],
  ],
  [
    'brief ones, one below the other',
    'k.cu(1): catastrophic error: could not open source file "nope.h"\nk.cu(2): error: expected a ";"\n',
    [
      { severity: 'error', message: 'could not open source file "nope.h"', file: 'k.cu', line: 1 },
      { severity: 'error', message: 'expected a ";"', file: 'k.cu', line: 2 },
    ],
  ],
  [
    'one about options',
    'nvrtc: error: unrecognized option --nonsense found\n \n',
    [{ severity: 'error', message: 'unrecognized option --nonsense found' }],
  ],
  [
    'messages of the assembler',
    "ptxas application ptx input, line 21; error   : Not a name of any known instruction: 'garbage'\nptxas fatal   : Ptx assembly aborted due to errors\nptxas info    : Used 8 registers\n",
    [
      {
        severity: 'error',
        message: "Not a name of any known instruction: 'garbage'",
        file: 'application ptx input',
        line: 21,
      },
      { severity: 'error', message: 'Ptx assembly aborted due to errors' },
      { severity: 'info', message: 'Used 8 registers' },
    ],
  ],
  ['nothing', '', []],
  ['lines that are not messages', 'a line\n\n(3): error\nx.cu(a): error: b\n', []],
])('parseLog() reads %s', (_what, log, expected) => {
  expect(parseLog(log)).toEqual(expected)
})

test('parseLog() takes linear time for many messages', () => {
  const one = 'k.cu(7): error: identifier "x" is undefined\n  x = 1;\n  ^\n\n'
  expect(parseLog(one.repeat(10_000))).toHaveLength(10_000)
})

test('parseLog() takes linear time for a long line', () => {
  for (const part of ['(1): ', ', line 1; ', 'error ', 'ptxas ', '(', ' ', '9', 'a(1): error #1', ', line 1; error ']) {
    const started = process.cpuUsage()
    parseLog(`ptxas ${part.repeat(200_000)}`)
    parseLog(part.repeat(200_000))
    const { user } = process.cpuUsage(started)
    expect(user, JSON.stringify(part)).toBeLessThan(5_000_000)
  }
})
