"""Makes the Parquet files that the tests of crates/data read, and what must be read from them.

    python3 tools/python/parquet_fixtures.py [--out crates/data/tests/parquet]

Needs pyarrow, polars and duckdb. Files differ in who wrote them and how: codecs, encodings, versions of pages, row
groups, missing values, types. index.json names, for every file, the JSON file of its expected columns, or a part of
the error that reading it must end with. In those, whole numbers are JSON integers, other numbers have a point or are
{"number": "nan"}, and missing values are null.

With --speed PATH it writes instead one file of 200,000 rows and 50 columns of numbers to PATH, to measure with.

Exit codes: 0 written, 1 the files are too large to be kept.
"""

import argparse
import datetime
import decimal
import json
import math
import pathlib
import random
import struct
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20260301
LARGEST_FILE = 20_000  # bytes
LARGEST_FOLDER = 150_000  # bytes
EPOCH = datetime.datetime(1970, 1, 1)
WORDS = "aspirin insulin Müller été 血压 сердце pulse rate 😀 oxygen of the and mmHg left right ventricle".split()


def single(number):
    """The nearest number of four bytes."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def whole(number):
    """Numbers too large for a cell's integer are read as other numbers."""
    return number if number is None or -(2**63) <= number < 2**63 else float(number)


class Table:
    """Columns for a writer, and the cells that they must make."""

    def __init__(self):
        self.columns = {}
        self.expected = {}

    def add(self, name, kind, values, expected=None, nullable=True):
        self.columns[name] = (pa.field(name, kind, nullable=nullable), pa.array(values, type=kind))
        self.expected[name] = values if expected is None else expected

    def arrow(self):
        fields = [field for field, _ in self.columns.values()]
        return pa.table([column for _, column in self.columns.values()], schema=pa.schema(fields))

    def json(self):
        def cell(value):
            if isinstance(value, bool):
                return int(value)
            if isinstance(value, float) and not math.isfinite(value):
                return {"number": str(value)}
            return value

        return {name: [cell(value) for value in values] for name, values in self.expected.items()}


def with_missing(values, every):
    return [None if row % every == every - 1 else value for row, value in enumerate(values)]


def all_types(rows):
    """One column of every type that is read, half of them with missing values."""
    numbers = random.Random(SEED)
    table = Table()
    table.add("required", pa.int32(), [numbers.randrange(-99, 99) for _ in range(rows)], nullable=False)
    table.add("flag", pa.bool_(), with_missing([numbers.random() < 0.5 for _ in range(rows)], 7))
    for bits, kind in [(8, pa.int8()), (16, pa.int16()), (32, pa.int32()), (64, pa.int64())]:
        edge = 2 ** (bits - 1)
        values = [-edge, edge - 1, 0, -1] + [numbers.randrange(-edge, edge) for _ in range(rows - 4)]
        table.add(f"int{bits}", kind, with_missing(values, 5))
    for bits, kind in [(8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()), (64, pa.uint64())]:
        values = [2**bits - 1, 0] + [numbers.randrange(2**bits) for _ in range(rows - 2)]
        table.add(f"uint{bits}", kind, values, [whole(value) for value in values])
    floats = [math.inf, -math.inf, math.nan, -0.0, 1e-300] + [numbers.gauss(0, 9) for _ in range(rows - 5)]
    table.add("float32", pa.float32(), floats, [single(value) for value in floats])
    table.add("float64", pa.float64(), with_missing(floats, 3))
    texts = [" ".join(numbers.choices(WORDS, k=numbers.randrange(4))) for _ in range(rows)]
    table.add("text", pa.string(), with_missing(texts, 6))
    table.add("class", pa.string(), [numbers.choice(["yes", "no"]) for _ in range(rows)])
    table.add("nothing", pa.string(), [None] * rows)
    table.add("same", pa.int64(), [7] * rows)
    add_times(table, rows, numbers)
    add_decimals(table, rows, numbers)
    return table


def add_times(table, rows, numbers):
    days = [numbers.randrange(-30_000, 30_000) for _ in range(rows)]
    dates = [EPOCH.date() + datetime.timedelta(day) for day in days]
    table.add("date", pa.date32(), with_missing(dates, 4), with_missing(days, 4))
    micros = [numbers.randrange(10**15) for _ in range(rows)]
    times = [EPOCH + datetime.timedelta(microseconds=value) for value in micros]
    table.add("stamp", pa.timestamp("us"), times, micros)


def add_decimals(table, rows, numbers):
    context = decimal.Context(prec=40)
    for digits, scale in [(4, 2), (9, 2), (18, 3), (38, 10), (12, 0)]:
        most = 10**digits - 1
        integers = [most, -most, 0] + [numbers.randrange(-most, most + 1) for _ in range(rows - 3)]
        values = [decimal.Decimal(value).scaleb(-scale, context) for value in integers]
        expected = integers if scale == 0 else [float(value) for value in values]
        missing = digits % 3 + 3
        kind = pa.decimal128(digits, scale)
        table.add(f"decimal{digits}", kind, with_missing(values, missing), with_missing(expected, missing))


def encoded(rows):
    """Columns for encodings: numbers that grow, texts with common beginnings."""
    numbers = random.Random(SEED + 1)
    table = Table()
    steps = [numbers.randrange(-5, 50) for _ in range(rows)]
    growing = [sum(steps[: row + 1]) for row in range(rows)]
    table.add("int32", pa.int32(), with_missing(growing, 9))
    table.add("int64", pa.int64(), [2**62 - value**3 for value in growing])
    table.add("wild", pa.int64(), [numbers.randrange(-(2**63), 2**63) for _ in range(rows)])
    floats = [numbers.gauss(80, 5) for _ in range(rows)]
    table.add("float32", pa.float32(), with_missing(floats, 4), with_missing([single(value) for value in floats], 4))
    table.add("float64", pa.float64(), floats)
    names = sorted(f"patient/{numbers.choice(WORDS)}/{numbers.randrange(30)}" for _ in range(rows))
    table.add("text", pa.string(), with_missing(names, 8))
    values = [decimal.Decimal(numbers.randrange(10**9)).scaleb(-2) for _ in range(rows)]
    table.add("decimal", pa.decimal128(20, 2), values, [float(value) for value in values])
    table.add("flag", pa.bool_(), with_missing([row // 20 % 2 == 0 for row in range(rows)], 11))
    return table


def prose(rows):
    """Text that packs well, but not too well."""
    numbers = random.Random(SEED + 2)
    table = Table()
    table.add("note", pa.string(), [" ".join(numbers.choices(WORDS, k=12)) for _ in range(rows)])
    table.add("value", pa.float64(), [round(numbers.gauss(0, 1), 2) for _ in range(rows)])
    return table


class Folder:
    """Where the files go."""

    def __init__(self, out):
        self.out = out
        self.index = {}
        out.mkdir(parents=True, exist_ok=True)
        for old in [*out.glob("*.parquet"), *out.glob("*.json")]:
            old.unlink()

    def expect(self, name, table):
        text = json.dumps(table.json(), ensure_ascii=False, separators=(",", ":"))
        (self.out / f"{name}.json").write_text(text + "\n", encoding="utf-8")

    def pyarrow(self, name, expected, table, **options):
        self.index[name] = expected
        table = table.arrow() if isinstance(table, Table) else table
        pq.write_table(table, self.out / f"{name}.parquet", store_schema=name == "pyarrow", **options)

    def polars(self, name, expected, table, **options):
        self.index[name] = expected
        polars.from_arrow(table.arrow()).write_parquet(self.out / f"{name}.parquet", **options)

    def duckdb(self, name, expected, table, options=""):
        self.index[name] = expected
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.register("rows", table.arrow())
        connection.execute(f"copy rows to '{self.out / name}.parquet' (format parquet{options})")

    def finish(self):
        text = json.dumps(self.index, indent=1, sort_keys=True)
        (self.out / "index.json").write_text(text + "\n", encoding="utf-8")
        sizes = {path.name: path.stat().st_size for path in self.out.iterdir()}
        total = sum(sizes.values())
        largest = max(sizes, key=sizes.get)
        print(f"{len(sizes)} files, {total} bytes; the largest is {largest}, {sizes[largest]} bytes")
        return sizes[largest] <= LARGEST_FILE and total <= LARGEST_FOLDER


def write_writers(folder):
    table = all_types(25)
    folder.expect("types", table)
    folder.pyarrow("pyarrow", "types.json", table)
    folder.polars("polars", "types.json", table)
    folder.duckdb("duckdb", "types.json", table)
    folder.pyarrow("pyarrow_old", "types.json", table, version="2.4", use_dictionary=False, compression="none",
                   write_page_checksum=True)
    folder.pyarrow("pyarrow_pages_2", "types.json", table, data_page_version="2.0", store_decimal_as_integer=True,
                   row_group_size=14)
    empty = all_types(25)
    empty.columns = {name: (field, column[:0]) for name, (field, column) in empty.columns.items()}
    empty.expected = {name: [] for name in empty.expected}
    few = Table()
    for name in ["int64", "text", "flag"]:
        few.columns[name], few.expected[name] = empty.columns[name], []
    folder.expect("empty", few)
    folder.pyarrow("empty_pyarrow", "empty.json", few)
    folder.polars("empty_polars", "empty.json", few)
    folder.duckdb("empty_duckdb", "empty.json", few)


def write_codecs(folder):
    table = prose(60)
    folder.expect("prose", table)
    for codec in ["none", "snappy", "gzip", "zstd"]:
        folder.pyarrow(f"codec_{codec}", "prose.json", table, use_dictionary=False, compression=codec)
    folder.pyarrow("codec_zstd_19", "prose.json", table, use_dictionary=False, compression="zstd", compression_level=19)
    folder.pyarrow("codec_zstd_pages_2", "prose.json", table, compression="zstd", data_page_version="2.0",
                   write_page_checksum=True)
    folder.polars("codec_polars_gzip", "prose.json", table, compression="gzip")
    folder.polars("codec_polars_zstd", "prose.json", table, compression="zstd", compression_level=9)
    folder.duckdb("codec_duckdb_zstd", "prose.json", table, ", codec zstd")
    small = Table()
    small.add("id", pa.int64(), [1, 2, 3])
    folder.pyarrow("codec_lz4", "packed with LZ4", small, compression="lz4")
    folder.pyarrow("codec_brotli", "packed with Brotli: expected none, snappy, gzip or zstd", small,
                   compression="brotli")


def write_encodings(folder):
    table = encoded(80)
    folder.expect("encoded", table)
    delta = {"int32": "DELTA_BINARY_PACKED", "int64": "DELTA_BINARY_PACKED", "wild": "DELTA_BINARY_PACKED",
             "text": "DELTA_BYTE_ARRAY", "decimal": "DELTA_BYTE_ARRAY", "flag": "RLE"}
    split = {name: "BYTE_STREAM_SPLIT" for name in ["int32", "int64", "float32", "float64", "decimal"]}
    for version in ["1.0", "2.0"]:
        folder.pyarrow(f"encoded_delta_{version[0]}", "encoded.json", table, use_dictionary=False,
                       column_encoding=delta, data_page_version=version)
    folder.pyarrow("encoded_split", "encoded.json", table, use_dictionary=False,
                   column_encoding=split | {"text": "DELTA_LENGTH_BYTE_ARRAY"})
    # Pages of a few rows, and dictionaries that grow too large, so that later pages do without them.
    folder.pyarrow("encoded_pages", "encoded.json", table, row_group_size=60, data_page_size=100,
                   write_batch_size=8, dictionary_pagesize_limit=200)
    folder.polars("encoded_polars", "encoded.json", table, row_group_size=40, data_page_size=200)
    folder.duckdb("encoded_duckdb_2", "encoded.json", table, ", parquet_version v2")


def write_oddities(folder):
    times = Table()
    nanos = [0, 10**9 - 1, 86_400 * 10**9, -(86_400 * 10**9) + 500_000_000, 1_700_000_000_123_456_789]
    times.add("stamp", pa.timestamp("ns"), nanos + [None], [-1.0] * 6)
    seconds = [divmod(value, 86_400 * 10**9) for value in nanos]
    times.expected["stamp"] = [day * 86_400.0 + rest / 1e9 for day, rest in seconds] + [None]
    folder.expect("spark", times)
    folder.pyarrow("spark", "spark.json", times, flavor="spark", use_deprecated_int96_timestamps=True)

    units = Table()
    for name, kind in [("milli", pa.timestamp("ms", "UTC")), ("nano", pa.timestamp("ns")), ("clock32", pa.time32("ms")),
                       ("clock64", pa.time64("ns"))]:
        units.columns[name] = (pa.field(name, kind), pa.array([0, 1, 86_399_999, None]).cast(
            pa.int32() if name == "clock32" else pa.int64()).cast(kind))
        units.expected[name] = [0, 1, 86_399_999, None]
    folder.expect("units", units)
    folder.pyarrow("units", "units.json", units)

    long = Table()
    long.add("long", pa.string(), ["x" * 1500, "é" * 900, "", None, "z" * 1999])
    folder.expect("long", long)
    folder.pyarrow("long_statistics", "long.json", long)

    nested = Table()
    nested.add("id", pa.int64(), [1, 2, 3])
    nested.add("list", pa.list_(pa.int32()), [[1, 2], [], None])
    nested.add("pair", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, None, None])
    nested.add("text", pa.string(), ["a", None, "c"])
    nested.add("null", pa.null(), [None, None, None])
    for name in ["list", "pair"]:
        del nested.expected[name]
    folder.expect("nested", nested)
    folder.pyarrow("nested", "nested.json", nested)

    fixed = Table()
    fixed.add("uuid", pa.binary(16), [b"0123456789abcdef"])
    folder.pyarrow("fixed", 'column "uuid" has values of the type FIXED_LEN_BYTE_ARRAY: expected', fixed)
    binary = Table()
    binary.add("bytes", pa.binary(), [b"fine", b"\xff\xfe"])
    folder.pyarrow("binary", 'column "bytes", row 2 in row group 1: the value', binary)
    twice = pa.table([[1], [2]], names=["same", "same"])
    folder.pyarrow("twice", 'two columns are called "same"', twice)

    # Rows that cost nothing: expected to be 50,000 times 7, and as many missing.
    constant = Table()
    constant.add("same", pa.int32(), [7] * 50_000)
    constant.add("nothing", pa.int64(), [None] * 50_000)
    folder.pyarrow("constant", "", constant)


def write_patients(path):
    """The table of crates/data/tests/tables.rs, which must be the same set as its CSV."""
    patients = {
        "patient": ["p10", "p2", "p1", "p3"],
        "age": [61, 70, 50, 39],
        "sex": ["f", "m", "f", "m"],
        "hr": [80.0, 90.0, 100.0, 70.0],
        "spo2": [97, None, 93, 95],
        "died": ["no", "yes", "no", "yes"],
        "site": ["north", "south", "south", "north"],
    }
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(patients), path)


def write_speed(path):
    numbers = random.Random(SEED + 3)
    columns = {f"c{at}": [numbers.gauss(0, 1) for _ in range(200_000)] for at in range(50)}
    pq.write_table(pa.table(columns), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=pathlib.Path, default=root / "crates/data/tests/parquet")
    parser.add_argument("--speed", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.speed:
        write_speed(arguments.speed)
        return 0
    folder = Folder(arguments.out)
    for write in [write_writers, write_codecs, write_encodings, write_oddities]:
        write(folder)
    write_patients(arguments.out.parent / "tables" / "patients.parquet")
    return 0 if folder.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
