import ts from 'typescript-api'
import { type Mutant, operators } from './mutant.js'

/** Methods and functions that take each other's place. */
const names: Readonly<Record<string, string>> = { some: 'every', every: 'some', min: 'max', max: 'min' }

/** Everything that can be wrong in a source of TypeScript. Types, imports and the words of errors are left alone. */
export function typescriptMutants(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Mutant[] = []
  const replace = (node: ts.Node, replacement: string): void => {
    found.push({ file, start: node.getStart(source), end: node.getEnd(), replacement })
  }
  const condition = (node: ts.Expression): void => {
    replace(node, `!(${node.getText(source)})`)
    replace(node, 'false')
  }
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText(source))) return
    if (ts.isBinaryExpression(node)) {
      const other = operators[node.operatorToken.getText(source)]
      const isText = [node.left, node.right].some((side) => ts.isStringLiteral(side) || ts.isTemplateExpression(side))
      if (other !== undefined && !(isText && other === '-')) {
        const [left, right] = [node.left.getText(source), node.right.getText(source)]
        const isAssignment = /[^=!<>]=$/.test(node.operatorToken.getText(source))
        replace(node, isAssignment ? `${left} ${other} ${right}` : `((${left}) ${other} (${right}))`)
      }
    } else if (ts.isIfStatement(node) || ts.isWhileStatement(node)) condition(node.expression)
    else if (ts.isConditionalExpression(node)) replace(node.condition, `!(${node.condition.getText(source)})`)
    else if (node.kind === ts.SyntaxKind.TrueKeyword) replace(node, 'false')
    else if (node.kind === ts.SyntaxKind.FalseKeyword) replace(node, 'true')
    else if (ts.isNumericLiteral(node)) replace(node, `${Number(node.text) + 1}`)
    else if (ts.isBigIntLiteral(node)) replace(node, `${BigInt(node.text.slice(0, -1)) + 1n}n`)
    else if (ts.isPrefixUnaryExpression(node) && /[!-]/.test(source.text[node.getStart(source)] as string)) {
      replace(node, node.operand.getText(source))
    } else if (ts.isPropertyAccessExpression(node) && Object.hasOwn(names, node.name.text)) {
      replace(node.name, names[node.name.text] as string)
    } else if (ts.isExpressionStatement(node) && canGo(node.expression)) replace(node, ';')
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function canGo(expression: ts.Expression): boolean {
  const inner = ts.isAwaitExpression(expression) || ts.isVoidExpression(expression) ? expression.expression : expression
  if (ts.isCallExpression(inner)) return inner.expression.kind !== ts.SyntaxKind.SuperKeyword
  return ts.isDeleteExpression(inner) || (ts.isBinaryExpression(inner) && /=$/.test(inner.operatorToken.getText()))
}
