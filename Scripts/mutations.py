"""Finds the places in Swift code where a small change makes a mutant, for Scripts/mutate.

Many mutants are compiled into one program. Each change is written next to the original, and a call of one of the
functions in SUPPORT chooses between them: `a < b` becomes `a ← b`, an operator which means `<=` in a process whose
environment has this mutant's number, and `<` in all others.

The code is read token by token. It must be formatted as swift format does.
"""

import bisect
import re

SUPPORT = """
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#else
import Musl
#endif
import Synchronization

private let activeMutant = getenv("POSTCARD_MUTANT").flatMap { Int(String(cString: $0)) }
private let reachedFolder = getenv("POSTCARD_MUTANTS_REACHED").map { String(cString: $0) }
private let reached = Mutex<Set<Int>>([])

/// - Parameter changes: Whether the mutant's value is another one than the original.
private func isActive(_ mutant: Int, changes: Bool = true) -> Bool {
    if let reachedFolder, changes, reached.withLock({ $0.insert(mutant).inserted }) {
        close(creat("\\(reachedFolder)/\\(mutant)", 0o644))
    }
    return mutant == activeMutant
}

func isMutated(_ mutant: Int) -> Bool { isActive(mutant) }

func mutatedCondition(_ mutant: Int, _ value: Bool) -> Bool { isActive(mutant) ? !value : value }

func mutatedBinding<Value>(_ mutant: Int, _ value: Value?) -> Value? {
    isActive(mutant, changes: value != nil) ? nil : value
}

func mutatedNumber<Number: FixedWidthInteger>(_ mutant: Int, _ value: Number) -> Number {
    isActive(mutant) ? value &+ 1 : value
}
@_disfavoredOverload
func mutatedNumber<Number: AdditiveArithmetic & ExpressibleByIntegerLiteral>(
    _ mutant: Int, _ value: Number
) -> Number {
    isActive(mutant) ? value + 1 : value
}

func mutatedResult(_ mutant: Int, _ value: Bool) -> Bool { isActive(mutant) ? !value : value }
func mutatedResult<Number: FixedWidthInteger>(_ mutant: Int, _ value: Number) -> Number {
    isActive(mutant) ? value &+ 1 : value
}
func mutatedResult<Value>(_ mutant: Int, _ value: Value?) -> Value? {
    isActive(mutant, changes: value != nil) ? nil : value
}
func mutatedResult<Elements: RangeReplaceableCollection>(_ mutant: Int, _ value: Elements) -> Elements {
    isActive(mutant, changes: !value.isEmpty) ? Elements() : value
}
@available(*, unavailable, message: "There is no other value to return.")
@_disfavoredOverload
func mutatedResult<Value>(_ mutant: Int, _ value: Value) -> Value { value }
"""

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

# What the operator of a mutant is declared as, where OTHER is the mutant's own operator.
OPERATORS = {
    "equality": """
func NAME<Value: Equatable>(_ a: Value, _ b: Value) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
@_disfavoredOverload
func NAME<A: BinaryInteger, B: BinaryInteger>(_ a: A, _ b: B) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
@_disfavoredOverload
func NAME<A: StringProtocol, B: StringProtocol>(_ a: A, _ b: B) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
""",
    "nil": """
func NAME<Value>(_ a: Value?, _ b: _OptionalNilComparisonType) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
""",
    "order": """
func NAME<Value: Comparable>(_ a: Value, _ b: Value) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
@_disfavoredOverload
func NAME<A: BinaryInteger, B: BinaryInteger>(_ a: A, _ b: B) -> Bool { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
""",
    "logic": """
func NAME(_ a: Bool, _ b: @autoclosure () throws -> Bool) rethrows -> Bool {
    try isActive(NUMBER) ? a OTHER b() : a ORIGINAL b()
}
""",
    "arithmetic": """
func NAME<Value: AdditiveArithmetic>(_ a: Value, _ b: Value) -> Value { isActive(NUMBER) ? a OTHER b : a ORIGINAL b }
""",
}

KEYWORDS = set(
    "actor as associatedtype break case catch class continue default defer deinit do else enum extension fallthrough "
    "for func get guard if import in indirect init is let nil operator protocol repeat return set struct subscript "
    "switch throw typealias var where while willSet didSet true false".split())
TYPES = {"struct", "class", "enum", "extension", "actor", "protocol"}
MODIFIERS = set(
    "public package internal private fileprivate open final static class mutating nonmutating override convenience "
    "required lazy weak unowned indirect nonisolated consuming borrowing dynamic optional isolated".split())
ACCESSORS = {"get", "set", "willSet", "didSet"}
# Statements after which a line goes on.
OPEN_ENDED = set("if guard while let var case return throw try await else for in is as switch where import".split())
# Calls that change nothing that a test can or should see.
IRRELEVANT_CALLS = set(
    "logger precondition preconditionFailure assert assertionFailure fatalError withExtendedLifetime".split())

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*)
    |(?P<string>\#*(?:\"{3}|"))
    |(?P<directive>\#(?:if|elseif|else|endif)\b[^\n]*)
    |(?P<number>0[xbo][0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[\#@$]?[A-Za-z_]\w*|`\w+`|\$[0-9]+)
    |(?P<bracket>[()\[\]{}])
    |(?P<operator>\.\.[.<]|\.|[-/=+!*%<>&|^~?]+)
    |(?P<mark>[,;:@\\#])""", re.X)


class Token:
    def __init__(self, kind, text, start, end, line, begins_line):
        self.kind, self.text, self.start, self.end = kind, text, start, end
        self.line, self.begins_line = line, begins_line


class Edit:
    """Text around a range of the code, or in its place."""

    def __init__(self, start, end, before="", after="", instead=None):
        self.start, self.end, self.before, self.after, self.instead = start, end, before, after, instead


class Mutant:
    """A change. `NUMBER` in its edits and its declaration is replaced by its number."""

    def __init__(self, path, line, change, edits, declaration=""):
        self.path, self.line, self.change = path, line, change
        self.edits, self.declaration = edits, declaration
        self.number = None

    @property
    def place(self):
        return f"{self.path}:{self.line}"


def string_end(text, start, hashes, quotes):
    """Where a string literal ends whose opening quotes end at `start`."""
    event = re.compile(rf"\\{hashes}(\(|.)|{quotes}{hashes}", re.S)
    while match := event.search(text, start):
        start = match.end()
        if match[1] is None:
            return start
        if match[1] == "(":
            depth = 1
            for token in TOKEN.finditer(text, start):
                if token.start() < start:
                    continue
                start = token.end()
                if token["string"]:
                    marks = token["string"].strip('"')
                    start = string_end(text, start, marks, token["string"][len(marks):])
                depth += {"(": 1, ")": -1}.get(token[0], 0)
                if depth == 0:
                    break
    return len(text)


def tokens(text):
    """The tokens of a file outside of comments and of what is compiled conditionally."""
    found, position, conditions, last_line = [], 0, 0, 0
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    while match := TOKEN.search(text, position):
        kind, start, position = match.lastgroup, match.start(), match.end()
        if match[0] == "/*":
            position = text.find("*/", position) + 2
        if kind == "comment":
            continue
        if kind == "string":
            hashes = match[0].strip('"')
            position = string_end(text, position, hashes, match[0][len(hashes):])
        if kind == "directive":
            conditions += {"#if": 1, "#endif": -1}.get(match[0].split()[0], 0)
            continue
        line = bisect.bisect_right(starts, start)
        if conditions == 0:
            found.append(Token(kind, text[start:position], start, position, line, line != last_line))
            last_line = bisect.bisect_right(starts, position - 1)
    return found


class Finder:
    """Finds the mutants of a file."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokens(text)
        self.mutants = []
        self.closing = {}
        self.is_in_initializer = False
        opened = []
        for index, token in enumerate(self.tokens):
            if token.kind == "bracket":
                if token.text in "([{":
                    opened.append(index)
                elif opened:
                    self.closing[opened.pop()] = index

    def find(self):
        self.block(0, len(self.tokens), "type")
        return self.mutants

    def add(self, index, change, edits, declaration=""):
        self.mutants.append(Mutant(self.path, self.tokens[index].line, change, edits, declaration))

    def source(self, start, end):
        """The code of the tokens from one index to before another, on one line."""
        text = " ".join(self.text[self.tokens[start].start:self.tokens[end - 1].end].split())
        return text if len(text) <= 70 else text[:67] + "…"

    def around(self, start, end, before, after=")"):
        return [Edit(self.tokens[start].start, self.tokens[end - 1].end, before, after)]

    def next(self, index):
        """The index after a token, or after the bracket that closes it."""
        return self.closing.get(index, index) + 1

    def first(self, texts, start, end):
        """The first token with one of the texts outside of brackets; `end` if there is none."""
        while start < end and self.tokens[start].text not in texts:
            start = self.next(start)
        return min(start, end)

    def split(self, start, end):
        """The ranges between commas outside of brackets."""
        while start < end:
            comma = self.first({","}, start, end)
            yield start, comma
            start = comma + 1

    def is_infix(self, index):
        token = self.tokens[index]
        return token.kind == "operator" and self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def continues(self, index):
        """Whether a token that begins a line continues the statement before it."""
        token, before = self.tokens[index], self.tokens[index - 1]
        if token.text in (".", "?", ":", "{", "else", "catch", "where", "as", "is", "in", "->"):
            return True
        return (self.is_infix(index) or before.text in (",", ":") or before.text in OPEN_ENDED
                or self.is_infix(index - 1))

    def statement_end(self, start, end):
        index = start
        while index < end:
            token = self.tokens[index]
            if token.text == ";" or index > start and token.begins_line and not self.continues(index):
                return index
            index = self.next(index)
        return min(index, end)

    def block(self, start, end, kind, returns=False):
        """Reads statements or members.

        `kind` is "type", "code", "closure" or "switch". `returns` is whether a block of a single expression returns it.
        """
        if kind == "switch":
            return self.switch(start, end, returns)
        if kind == "closure" and self.tokens[start].text != "for":
            header = self.first({"in"}, start, end)
            if header < end and self.tokens[header].line == self.tokens[start].line:
                start = header + 1
        index = start
        while index < end:
            if self.tokens[index].text == ";":
                index += 1
                continue
            following = self.statement_end(index, end)
            is_only = index == start and following == end
            self.statement(index, max(following, index + 1), kind, returns, is_only)
            index = max(following, index + 1)

    def statement(self, start, end, kind, returns, is_only):
        first = self.tokens[start]
        lead = self.lead(start, end)
        if kind == "type":
            if lead in ("case", "import", "typealias", "associatedtype", "protocol", "operator", "precedencegroup"):
                return
        elif first.text == "return":
            self.result(start + 1, end)
        elif first.kind == "name" and (first.text not in KEYWORDS) and first.text[0] not in "@#":
            if is_only and returns:
                self.result(start, end)
            elif not (is_only and kind == "closure") or self.assignment(start, end) < end:
                self.removal(start, end)
        elif is_only and returns and first.text not in KEYWORDS:
            self.result(start, end)
        self.scan(start, end, lead, kind, returns and is_only)

    def lead(self, start, end):
        """The keyword that says what a statement or a member is."""
        for index in range(start, min(end, start + 12)):
            token = self.tokens[index]
            if token.text in ("(", ")") or token.text[0] == "@" or token.text in MODIFIERS - {"class"}:
                continue
            if token.text == "class" and self.tokens[index + 1].text in ("func", "var", "subscript"):
                continue
            if self.tokens[index - 1].text == "(" and index > start:
                continue
            return token.text
        return ""

    def scan(self, start, end, lead, kind, returns):
        """Finds what can be anywhere in an expression, and reads the blocks in it."""
        is_switch = False
        index = start
        while index < end:
            token = self.tokens[index]
            closing = self.closing.get(index)
            if token.text[0] in "@#" or token.text in IRRELEVANT_CALLS:
                arguments = self.first({"("}, index, min(index + 4, end))
                if arguments < end and self.tokens[arguments].text == "(":
                    index = self.next(arguments)
                    continue
            if token.text in ("if", "guard", "while"):
                self.conditions(index, end)
            elif token.text == "switch":
                is_switch = True
            elif token.text == "where" and lead in ("for", "do", "case"):
                stop = self.first({"{", ":"}, index, end)
                if index + 1 < stop:
                    self.condition(index + 1, stop)
            elif token.text in ("true", "false") and self.tokens[index - 1].text != "while":
                self.add(index, f"`{token.text}` becomes `{'false' if token.text == 'true' else 'true'}`",
                         self.around(index, index + 1, "mutatedCondition(NUMBER, "))
            elif token.kind == "number":
                self.number(index)
            elif token.kind == "operator":
                self.operator(index)
            if closing is None:
                index += 1
                continue
            if token.text == "{":
                was_in_initializer = self.is_in_initializer
                if kind == "type":
                    self.is_in_initializer = lead == "init"
                self.block(index + 1, closing, *self.block_kind(start, index, lead, kind, is_switch, returns))
                self.is_in_initializer = was_in_initializer
                is_switch = False
            else:
                self.scan(index + 1, closing, "", "closure", False)
            index = closing + 1

    def block_kind(self, start, brace, lead, kind, is_switch, returns):
        """What a block is that is not in parentheses, and whether it returns its only expression."""
        if is_switch:
            return "switch", returns or self.tokens[start].text != "switch"
        if lead in TYPES:
            return "type", False
        if lead in ("func", "subscript"):
            return "code", self.first({"->"}, start, brace) < brace
        if lead == "var" and kind == "type" and self.first({"="}, start, brace) == brace:
            return "code", True
        if lead == "get":
            return "code", True
        if lead in KEYWORDS - {"let", "var", "return", "throw", "nil", "true", "false"}:
            return "code", False
        return "closure", False

    def conditions(self, index, end):
        stop = self.first({"else"} if self.tokens[index].text == "guard" else {"{"}, index, end)
        for start, comma in self.split(index + 1, stop):
            if start >= comma:
                continue
            first = self.tokens[start].text
            if first in ("let", "var"):
                equals = self.first({"="}, start, comma)
                name = self.tokens[comma - 1]
                if equals + 1 < comma:
                    self.add(start, f"`{self.source(start, comma)}` finds nothing",
                             self.around(equals + 1, comma, "mutatedBinding(NUMBER, "))
                elif equals == comma and comma - start == 2 and name.text != "self":
                    after = f" = mutatedBinding(NUMBER, {name.text})"
                    self.add(start, f"`{self.source(start, comma)}` finds nothing",
                             [Edit(name.start, name.end, after=after)])
            elif first != "case" and first[0] != "#":
                self.condition(start, comma)

    def condition(self, start, end):
        if self.tokens[start].text in ("true", "false"):
            return
        self.add(start, f"`{self.source(start, end)}` is negated",
                 self.around(start, end, "mutatedCondition(NUMBER, "))

    def result(self, start, end):
        if start >= end or end - start == 1 and self.tokens[start].kind != "name":
            return
        if self.tokens[start].text in ("nil", "true", "false", "switch", "if", "self"):
            return
        self.add(start, f"`{self.source(start, end)}` is not returned, but another value",
                 self.around(start, end, "mutatedResult(NUMBER, "))

    def assignment(self, start, end):
        """The index of an assignment operator."""
        index = start
        while index < end:
            if self.is_infix(index) and self.tokens[index].text in ("=", "+=", "-=", "*=", "&+=", "|=", "&=", "^="):
                return index
            index = self.next(index)
        return end

    def removal(self, start, end):
        """A call or an assignment that is not made."""
        names = [token.text for token in self.tokens[start:min(end, start + 4)] if token.text not in ("try", "await")]
        if names[0] in IRRELEVANT_CALLS or names[0] in ("self", "super") and names[1:3] == [".", "init"]:
            return
        operator = self.assignment(start, end)
        if operator < end and self.tokens[operator].text == "=":
            # Without its first value, what is declared cannot be used, and nothing compiles.
            target = self.text[self.tokens[start].start:self.tokens[operator - 1].end].removeprefix("self.")
            is_first_value = re.search(rf"\blet {re.escape(target)}: [^=\n{{]+\n", self.text)
            if target.isidentifier() and (self.is_in_initializer or is_first_value):
                return
        if operator == end:
            is_call = self.tokens[end - 1].text in (")", "}")
            if not is_call or any(self.is_infix(index) for index in self.outside(start, end)):
                return
        self.add(start, f"`{self.source(start, end)}` is removed",
                 self.around(start, end, "if !isMutated(NUMBER) { ", " }"))

    def outside(self, start, end):
        """The indices of the tokens outside of brackets."""
        while start < end:
            yield start
            start = self.next(start)

    def number(self, index):
        token = self.tokens[index]
        if re.fullmatch(r"0[xbo][0-9a-fA-F_]+|[0-9][0-9_]*", token.text) and self.tokens[index - 1].text != ".":
            self.add(index, f"`{token.text}` becomes one more in `{self.line(token)}`",
                     self.around(index, index + 1, "mutatedNumber(NUMBER, "))

    def operator(self, index):
        token = self.tokens[index]
        if not self.is_infix(index):
            return
        neighbors = self.tokens[index - 1].text, self.tokens[index + 1].text
        if token.text in COMPARISONS:
            other, precedence = COMPARISONS[token.text], "Comparison"
            kind = "nil" if neighbors[1] == "nil" else "equality" if token.text in ("==", "!=") else "order"
        elif token.text in ("&&", "||"):
            other, kind = "||" if token.text == "&&" else "&&", "logic"
            precedence = "LogicalConjunction" if token.text == "&&" else "LogicalDisjunction"
        elif token.text in ("+", "-") and not any(text[-1:] in '"]' for text in neighbors):
            other, kind, precedence = "-" if token.text == "+" else "+", "arithmetic", "Addition"
        else:
            return
        declaration = f"infix operator NAME: {precedence}Precedence" + OPERATORS[kind]
        declaration = declaration.replace("OTHER", other).replace("ORIGINAL", token.text)
        self.add(index, f"`{token.text}` becomes `{other}` in `{self.line(token)}`",
                 [Edit(token.start, token.end, instead="NAME")], declaration)

    def line(self, token):
        start = self.text.rfind("\n", 0, token.start) + 1
        text = self.text[start:self.text.find("\n", token.end)].strip()
        return text if len(text) <= 70 else text[:67] + "…"

    def switch(self, start, end, returns):
        """The cases of a switch."""
        cases, index = [], start
        while index < end:
            colon = self.first({":"}, index, end)
            body = following = min(colon + 1, end)
            while following < end:
                token = self.tokens[following]
                if token.begins_line and token.text in ("case", "default", "@unknown") \
                        and self.tokens[following - 1].text not in (",", "if", "guard", "while"):
                    break
                following = self.next(following)
            self.scan(index, colon, "case", "closure", False)
            self.block(body, following, "code", returns)
            cases.append((index, colon, body, following))
            index = max(following, index + 1)
        for case, other in zip(cases, cases[1:]):
            self.swap(case, other)

    def swap(self, first, second):
        """Two cases whose statements are swapped: they come once more, before the others, with a condition."""
        text = []
        for case, other in ((first, second), (second, first)):
            index, colon, _, _ = case
            _, _, body, following = other
            if self.tokens[index].text != "case" or following <= body:
                return
            code = self.text[self.tokens[body].start:self.tokens[following - 1].end]
            where = self.first({"where"}, index, colon)
            # What one case binds and its statements need is missing in the other.
            bound, bound_there = (
                set(re.findall(r"\b(?:let|var) (\w+)", self.text[self.tokens[a].start:self.tokens[b].start]))
                for a, b in ((index, colon), other[:2]))
            if any(re.search(rf"\b{name}\b", code) for name in bound_there - bound):
                return
            patterns = [self.text[self.tokens[a].start:self.tokens[b - 1].end] for a, b in self.split(index + 1, where)]
            condition = "isMutated(NUMBER)"
            if where < colon:
                condition += f" && ({self.text[self.tokens[where + 1].start:self.tokens[colon - 1].end]})"
            if "fallthrough" in code or len(patterns) > 1 and where < colon:
                return
            label = ", ".join(f"{pattern} where {condition}" for pattern in patterns)
            text.append((f"case {label}:\n{code}\n", code))
        if text[0][1] == text[1][1]:
            return
        labels = [self.source(case[0], case[1]) for case in (first, second)]
        start = self.tokens[first[0]].start
        self.add(first[0], f"`{labels[0]}` and `{labels[1]}` are swapped",
                 [Edit(start, start, before=text[0][0] + text[1][0])])


def operator_name(number):
    """An operator of two mathematical characters, different for each number."""
    return chr(0x2190 + number // 200) + chr(0x2200 + number % 200)


def with_number(text, mutant):
    return text.replace("NUMBER", str(mutant.number)).replace("NAME", operator_name(mutant.number))


def support(mutants):
    """The file that a module's mutants need."""
    return SUPPORT + "".join("\n" + with_number(mutant.declaration, mutant) for mutant in mutants if mutant.declaration)


def inject(text, mutants):
    """The code with all of its mutants, and for each the ranges of lines that it is on in there, smallest first."""
    pieces = []
    for mutant in mutants:
        for edit in mutant.edits:
            length = edit.end - edit.start
            if edit.instead is not None:
                pieces.append((edit.start, 3, 0, mutant, edit.instead, edit.end))
                continue
            # What ends at a place comes before what begins there; of what begins there, the longest comes first.
            if edit.before:
                pieces.append((edit.start, 1 if length == 0 else 2, -length, mutant, edit.before, edit.start))
            if edit.after:
                pieces.append((edit.end, 0, length, mutant, edit.after, edit.end))
    pieces.sort(key=lambda piece: piece[:3] + ((-1 if piece[1] == 0 else 1) * piece[3].number,))
    code, position, line, places = [], 0, 1, {}
    for start, _, _, mutant, piece, end in pieces:
        before, piece = text[position:start], with_number(piece, mutant)
        code += [before, piece]
        line += before.count("\n")
        first, last = places.get(mutant, (line, line))
        line += piece.count("\n")
        places[mutant] = (min(first, line), line)
        position = end
    code.append(text[position:])
    return "".join(code), places
