"""The table rooms.txt: layers, the prefixes of their symbols, and what each stands on."""
import pathlib


class Rooms:
    """prefixes, stands_on: of each layer, in the table's order; core: the layers of the core."""

    def __init__(self, root):
        self.prefixes, self.stands_on, self.core = {}, {}, ()
        for line in (pathlib.Path(root) / "rooms.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            folder, prefixes, *others = line.split()
            self.prefixes[folder] = tuple(prefixes.split(","))
            expanded = [x for other in others if other != "-" for x in (self.core if other == "core" else (other,))]
            unknown = [other for other in expanded if other not in self.stands_on]
            if unknown:
                raise ValueError(f"rooms.txt: {folder} stands on {unknown[0]}, which no row above it has")
            self.stands_on[folder] = tuple(expanded)
            if folder == "eval":
                self.core = tuple(self.stands_on)

    @property
    def clients(self):
        return [folder for folder, others in self.stands_on.items() if set(others) >= set(self.core)]

    def of(self, name):
        """The layer of a path from the root, or None."""
        above = [str(folder) for folder in (pathlib.PurePath(name), *pathlib.PurePath(name).parents)]
        return next((folder for folder in above if folder in self.stands_on), None)
