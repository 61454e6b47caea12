"""Changes to queues: odd values, other tables, damage, and links to other places."""

import contextlib
import os
import shutil
import socket
import sqlite3
import struct
import uuid

from queues import COMPANIONS, Queue, odd_value

def make(folder, templates, canary, chance):
    """Copies a queue and changes it once or a few times. Returns a description of the changes."""
    remove(os.path.dirname(folder))
    template = chance.choice(templates)
    shutil.copytree(template, folder)
    os.chmod(folder, 0o700)
    queue = Queue(folder, canary, chance)
    done = [os.path.basename(template)]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        change = chance.choice(CHANGES)
        try:
            done.append(f"{change.__name__}: {change(queue)}")
        except (OSError, sqlite3.Error, ArithmeticError, LookupError, ValueError, struct.error) as error:
            done.append(f"{change.__name__} failed: {error}")
    return "; ".join(done)


def remove(path):
    for place, folders, _ in os.walk(path):
        for name in folders:
            if not os.path.islink(f"{place}/{name}"):
                os.chmod(f"{place}/{name}", 0o700)
    shutil.rmtree(path, ignore_errors=True)


def rows(queue):
    """Puts odd values into columns of some rows."""
    with queue.connected() as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        done = []
        for _ in range(queue.chance.randrange(1, 6)):
            table = queue.chance.choice(sorted(tables))
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column, value = queue.chance.choice(columns), odd_value(queue)
            where = queue.chance.choice(["", " WHERE rowid = 1", " WHERE rowid = 2", " WHERE rowid = 4"])
            done.append(f"{table}.{column} = {value!r:.60}{where}")
            with contextlib.suppress(sqlite3.Error):
                database.execute(f"UPDATE {table} SET {column} = ?{where}", (value,))
    return ", ".join(done)


def states(queue):
    """Makes states and times inconsistent."""
    with queue.connected() as database:
        values = (
            queue.chance.choice(["waiting", "sending", "retrying", "paused", "done", "failed", "cancelled", "x"]),
            queue.chance.choice([None, 0, 1, 2, 3, "x"]),
            queue.chance.choice([0, -1e308, 1e308, float("inf"), "soon", b""]),
            queue.chance.choice([0, 2**63 - 1, -(2**63)]), queue.chance.choice([0, 2**63 - 1, -(2**63)]),
            queue.chance.randrange(1, 5))
        database.execute(
            "UPDATE upload SET state = ?, schedule = ?, due = ?, attempts = ?, failures = ? WHERE id = ?", values)
    return repr(values)


def ids(queue):
    """Changes identifiers, and removes or repeats rows."""
    number = queue.chance.choice([0, -1, -(2**63), 2**63 - 1, 2**63 - 2, 7])
    statement = queue.chance.choice([
        f"UPDATE upload SET id = {number} WHERE id = 1", f"UPDATE request SET id = {number} WHERE id = 1",
        f"UPDATE upload SET id = {number} WHERE id = 1; UPDATE request SET id = {number} WHERE id = 1",
        "DELETE FROM request", "DELETE FROM request WHERE id = 1", "DELETE FROM upload WHERE id = 1",
        "DELETE FROM queue",
        "INSERT INTO queue (isPaused) VALUES (1); INSERT INTO queue (isPaused) VALUES ('x')",
        "UPDATE queue SET isPaused = 'x'", "UPDATE queue SET done = 'x'", f"UPDATE queue SET done = {number}",
        f"UPDATE sqlite_sequence SET seq = {number}", "UPDATE sqlite_sequence SET seq = 'x'",
        "DELETE FROM sqlite_sequence", f"INSERT INTO delivery VALUES (2, {number})",
        f"UPDATE delivery SET id = {number}", "INSERT INTO delivery VALUES (1, 'x')",
        "UPDATE upload SET uuid = lower((SELECT uuid FROM upload WHERE id = 4)) WHERE id = 2",
        "UPDATE upload SET uuid = CAST((SELECT uuid FROM upload WHERE id = 4) AS BLOB) WHERE id = 2",
    ])
    with queue.connected() as database:
        database.executescript(statement)
    return statement


def schema(queue):
    """Changes the schema: tables, columns, triggers, views and indexes."""
    target = queue.target()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    table = queue.chance.choice(["upload", "request", "response", "delivery", "resumption", "queue"])
    statement = queue.chance.choice([
        f"DROP TABLE {table}", f"ALTER TABLE {table} RENAME TO other", "ALTER TABLE upload RENAME COLUMN uuid TO name",
        "ALTER TABLE upload RENAME COLUMN url TO uuid2; ALTER TABLE upload ADD COLUMN url TEXT",
        "ALTER TABLE upload DROP COLUMN reason", "DROP INDEX upload_ready", "DROP INDEX upload_due",
        f"CREATE TRIGGER t AFTER UPDATE ON upload BEGIN SELECT load_extension('{target}'); END",
        f"CREATE TRIGGER t AFTER UPDATE ON upload BEGIN SELECT writefile('{target}', 'x'), readfile('{target}'); END",
        "CREATE TRIGGER t AFTER UPDATE ON upload BEGIN DELETE FROM upload; END",
        "CREATE TRIGGER t BEFORE INSERT ON response BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER t BEFORE UPDATE ON upload BEGIN SELECT RAISE(IGNORE); END",
        f"CREATE TRIGGER t AFTER UPDATE ON upload BEGIN UPDATE queue SET isPaused = ({endless}); END",
        f"CREATE TRIGGER t AFTER UPDATE ON upload WHEN new.state = 'sending' BEGIN UPDATE upload SET "
        "state = 'waiting', schedule = 0, attempts = 0, failures = 0 WHERE id = new.id; END",
        f"ALTER TABLE {table} RENAME TO inner_1; CREATE VIEW {table} AS SELECT * FROM inner_1",
        f"DROP TABLE queue; CREATE VIEW queue AS {endless}".replace("count(*)", "count(*) AS isPaused"),
        f"ALTER TABLE upload RENAME TO inner_1;"
        f"CREATE VIEW upload AS SELECT *, load_extension('{target}') FROM inner_1;"
        "CREATE TRIGGER t INSTEAD OF UPDATE ON upload BEGIN DELETE FROM inner_1; END",
        "ALTER TABLE upload ADD COLUMN extra AS (load_extension('x'))",
        "ALTER TABLE upload ADD COLUMN extra AS (printf('%.*c', 900000000, 'x'))",
        "CREATE INDEX strange ON upload (abs(id), lower(uuid))",
        "CREATE INDEX strange ON upload (printf('%.100000c', uuid))",
        "CREATE VIRTUAL TABLE strange USING fts5(text)", "CREATE VIRTUAL TABLE strange USING rtree(id, a, b)",
        "CREATE TABLE grdb_issue_102 (id INTEGER PRIMARY KEY)", "CREATE VIEW grdb_issue_102 AS SELECT 1",
        "CREATE TABLE sqlite_parameters (x)",
        "CREATE TABLE other AS SELECT * FROM upload", "ANALYZE",
        "CREATE TRIGGER t AFTER INSERT ON upload BEGIN SELECT 1; END",
        "PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 7", "PRAGMA user_version = -1",
        "PRAGMA application_id = 0",
        "PRAGMA user_version = 0; PRAGMA application_id = 0", "PRAGMA journal_mode = DELETE; PRAGMA user_version = 7",
        "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = FULL; VACUUM", "PRAGMA journal_mode = DELETE",
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM",
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM",
    ])
    with queue.connected() as database:
        database.executescript("PRAGMA legacy_alter_table = ON; " + statement)
    return statement


def written_schema(queue):
    """Writes a schema that no statement can make."""
    table = queue.chance.choice(["upload", "request", "queue", "upload_ready", "upload_due"])
    statement = queue.chance.choice([
        f"UPDATE sqlite_master SET rootpage = {queue.chance.choice([0, 1, 2, 3, 5, -1, 10**6, 2**31])} "
        f"WHERE name = '{table}'",
        f"UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'request') "
        f"WHERE name = '{table}'",
        f"UPDATE sqlite_master SET sql = 'CREATE TABLE {table} (x' WHERE name = '{table}'",
        f"UPDATE sqlite_master SET sql = 'CREATE VIEW {table} AS SELECT 1', type = 'view', rootpage = 0 "
        f"WHERE name = '{table}'",
        f"UPDATE sqlite_master SET sql = NULL WHERE name = '{table}'",
        f"DELETE FROM sqlite_master WHERE name = '{table}'",
        "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')",
        "UPDATE sqlite_master SET sql = replace(sql, 'TEXT', 'BLOB')",
        "UPDATE sqlite_master SET sql = replace(sql, 'uuid TEXT NOT NULL UNIQUE', "
        "'uuid TEXT NOT NULL UNIQUE DEFAULT (load_extension(1))')",
        "UPDATE sqlite_master SET sql = replace(sql, 'INTEGER PRIMARY KEY', 'PRIMARY KEY')",
        "UPDATE sqlite_master SET tbl_name = 'queue'", "UPDATE sqlite_master SET name = upper(name)",
        f"INSERT INTO sqlite_master VALUES ('trigger', 't', 'upload', 0, "
        f"'CREATE TRIGGER t AFTER UPDATE ON upload BEGIN ATTACH ''{queue.target()}'' AS x; END')",
        f"INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, "
        f"'CREATE VIRTUAL TABLE v USING csv(filename={queue.target()})')",
        "UPDATE sqlite_master SET sql = replace(sql, 'ON DELETE CASCADE', 'ON DELETE SET NULL')",
    ])
    with queue.connected() as database:
        database.executescript("PRAGMA writable_schema = ON; " + statement)
    return statement


def read(path):
    with open(path, "rb") as file:
        return bytearray(file.read())


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def header(queue):
    """Changes fields of the database's header."""
    content, chance = read(queue.own_file(queue.database)), queue.chance
    for _ in range(chance.randrange(1, 4)):
        offset = chance.choice([0, 16, 18, 19, 20, 21, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 92, 96])
        content[offset : offset + 4] = chance.choice(
            [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\4",
             struct.pack(">I", chance.getrandbits(32))])
    write(queue.database, content)
    return f"{content[:100].hex()}"


def pages(queue):
    """Changes bytes and pages of the database or its log."""
    path = queue.chance.choice([queue.database] * 4 + [f"{queue.folder}/{name}" for name in COMPANIONS])
    content, chance = read(queue.own_file(path)), queue.chance
    size = 4096
    kind = chance.choice(["bits", "cut", "zero", "random", "copy", "grow", "pointer"])
    if kind == "bits" and content:
        for _ in range(chance.choice([1, 3, 30, 300])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del content[chance.choice([0, 1, 99, 100, 4096, chance.randrange(len(content) + 1)]) :]
    elif kind == "grow":
        content += bytes(chance.choice([1, 4096, 40960]))
    else:
        page = chance.randrange(max(len(content) // size, 1)) * size
        if kind == "zero":
            content[page : page + size] = bytes(size)
        elif kind == "random":
            content[page : page + size] = bytes(chance.getrandbits(8) for _ in range(size))
        elif kind == "copy":
            other = chance.randrange(max(len(content) // size, 1)) * size
            content[page : page + size] = content[other : other + size]
        else:
            # A page whose children are a single page, perhaps itself: a cycle.
            child, cells = chance.randrange(1, max(len(content) // size, 2) + 1), 300
            start = 100 if page == 0 else 0
            tree = struct.pack(">BHHHBI", 5, 0, cells, size - 5 * cells, 0, child)
            tree += b"".join(struct.pack(">H", size - 5 * (index + 1)) for index in range(cells))
            content[page + start : page + start + len(tree)] = tree
            for index in range(cells):
                at = page + size - 5 * (index + 1)
                content[at : at + 5] = struct.pack(">IB", child, index % 128)
    write(path, content)
    return f"{os.path.basename(path)} {kind}"


def log(queue):
    """A log that says more than there is, with checksums that are right."""
    path = f"{queue.folder}/queue.sqlite-wal"
    chance = queue.chance
    size = chance.choice([1, 2, 10, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF])
    content = read(queue.own_file(queue.database))
    if os.path.lexists(path):
        queue.own_file(path)

    def checksum(data, start):
        first, second = start
        for index in range(0, len(data), 8):
            a, b = struct.unpack(">II", data[index : index + 8])
            first = (first + a + second) & 0xFFFFFFFF
            second = (second + b + first) & 0xFFFFFFFF
        return first, second

    head = struct.pack(">IIIIII", 0x377F0683, 3007000, 4096, 0, 1, 2)
    sums = checksum(head, (0, 0))
    made = head + struct.pack(">II", *sums)
    for number in range(chance.randrange(1, 4)):
        page = chance.choice([1, 2, 3, 7, 1000])
        data = bytes(content[(page - 1) * 4096 : page * 4096]).ljust(4096, b"\0")
        if chance.random() < 0.5:
            data = data[:28] + struct.pack(">I", size) + data[32:]
        frame = struct.pack(">II", page, size)
        sums = checksum(frame + data, sums)
        made += frame + struct.pack(">IIII", 1, 2, *sums) + data
    write(path, made)
    return f"{size} pages"


def journal(queue):
    """Writes a journal of a transaction over several databases. SQLite removes the file that it names."""
    name = f"{queue.canary}/{queue.chance.choice(['secret', '1', 'inner/0', 'other.sqlite'])}".encode()
    sector = 512
    pages = os.path.getsize(queue.own_file(queue.database)) // 4096
    if os.path.lexists(f"{queue.folder}/queue.sqlite-journal"):
        queue.own_file(f"{queue.folder}/queue.sqlite-journal")
    content = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 1, pages, sector, 4096)
    content = content.ljust(sector, b"\0")
    content += struct.pack(">I", 0x40000000 // 4096 + 1) + name
    content += struct.pack(">II", len(name), sum(byte - 256 if byte > 127 else byte for byte in name) & 0xFFFFFFFF)
    content += bytes.fromhex("d9d505f920a163d7")
    write(f"{queue.folder}/queue.sqlite-journal", content)
    if queue.chance.random() < 0.7:
        with contextlib.suppress(OSError):
            os.remove(f"{queue.folder}/queue.sqlite-wal")
    return name.decode()


def plant(queue, path):
    """Replaces a file with something that is not the queue's."""
    queue.own(path)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
    kind = queue.chance.choice(
        ["link", "link", "relative", "name", "pipe", "folder", "file", "socket", "loop", "empty"])
    target = queue.target()
    if kind == "link":
        os.symlink(target, path)
    elif kind == "relative":
        os.symlink(queue.relative(), path)
    elif kind == "name":
        files = [f"{queue.canary}/{name}" for name in sorted(os.listdir(queue.canary))]
        os.link(queue.chance.choice([name for name in files if os.path.isfile(name)]), path, follow_symlinks=False)
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        os.mkdir(path, 0o700)
        if queue.chance.random() < 0.5:
            os.symlink(target, f"{path}/0")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.bind(path)
    elif kind == "loop":
        os.symlink(os.path.basename(path), path)
    else:
        write(path, b"" if kind == "empty" else bytes(queue.chance.getrandbits(8) for _ in range(1000)))
    return f"{os.path.relpath(path, queue.folder)}: {kind} {target}"


def files(queue):
    """Replaces one of the queue's files."""
    names = ["queue.sqlite", "queue.lock", "queue.closed", "bodies", "files", "older-1"] + COMPANIONS
    return plant(queue, f"{queue.folder}/{queue.chance.choice(names)}")


def bodies(queue):
    """Replaces or changes a body."""
    path = queue.body()
    if queue.chance.random() < 0.2:
        os.chmod(queue.own(os.path.dirname(path)), queue.chance.choice([0o000, 0o500, 0o777]))
        return "permissions"
    if queue.chance.random() < 0.3:
        size = os.path.getsize(queue.own_file(path))
        os.truncate(path, queue.chance.choice([0, size - 1, size + 1, 1 << 40]))
        return "length"
    return plant(queue, path)


def same_length(queue):
    """Replaces a body with a link to a file of the same length."""
    path = queue.body()
    target = f"{queue.canary}/long-{os.path.getsize(path)}"
    os.remove(path)
    (os.symlink if queue.chance.random() < 0.5 else os.link)(target, path)
    return target


def strays(queue):
    """Adds old files that belong to no upload."""
    made = []
    for _ in range(queue.chance.randrange(1, 4)):
        name = queue.chance.choice([
            str(uuid.UUID(int=queue.chance.getrandbits(128))).upper(), str(uuid.UUID(int=1)), "notes.txt", "..x",
            "a\nb", "\udcff\udcfe", "0"])
        made.append(plant(queue, f"{queue.folder}/bodies/{name}"))
        if "name" not in made[-1]:
            os.utime(f"{queue.folder}/bodies/{name}", (1_000_000_000,) * 2, follow_symlinks=False)
    return ", ".join(made)


CHANGES = [rows, rows, rows, states, ids, schema, schema, written_schema, header, pages, pages, log, journal, files,
           bodies, same_length, strays]
