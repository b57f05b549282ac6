"""``python -m tests.golden``: say which golden numbers change, and write them anew."""

from tests.golden.cases import compute, list_cases
from tests.golden.numbers import NUMBERS, list_changes, read_numbers, write_numbers


def main() -> None:
    """Compute all numbers, compare them with those that are kept, and keep them."""
    kept, found = (read_numbers() if NUMBERS.exists() else {}), {case.name: compute(case) for case in list_cases()}
    for name in sorted(kept.keys() | found.keys()):
        changed = list_changes(kept[name], found[name], bits=True) if name in kept and name in found else ["new" if name in found else "gone"]
        if changed:
            print(f"{name}: {', '.join(changed)}")
    write_numbers(found)
    print(f"{NUMBERS} written: {len(found)} cases; say in the changelog why numbers changed, and of which models")


if __name__ == "__main__":
    main()
