"""How questions are worded: noun phrases for a hop, questions for the last hop, comparisons.

{x} is the entity so far (a name or another phrase), {k} what the wanted entity is; {a} and {b} are compared.
"""

from __future__ import annotations

LABELS = {
    "lead": "leading actor",
    "studio": "production company",
    "location": "filming location",
    "based_on": "based on",
    "released": "year of release",
    "minutes": "running time",
    "published": "year of publication",
    "label": "record label",
    "recorded": "year of recording",
    "origin": "place of formation",
    "formed": "year of formation",
    "birthplace": "place of birth",
    "birth": "year of birth",
    "death": "year of death",
    "alma": "educated at",
    "mentor": "student of",
    "prize": "award received",
    "burial": "place of burial",
    "seat": "headquarters location",
    "founded": "year of foundation",
    "founder": "founded by",
    "campus": "location",
    "established": "year of establishment",
    "sponsor": "conferred by",
    "builder": "manufacturer",
    "port": "home port",
    "launched": "year of launch",
    "river": "located on river",
}

# A hop from subject to object.
PHRASE: dict[str, tuple[str, ...]] = {
    "director": ("the director of {x}", "the person who directed {x}", "the one who directed {x}"),
    "lead": ("the leading actor of {x}", "the star of {x}", "the person who played the lead in {x}"),
    "composer": ("the composer of the music for {x}", "the person who scored {x}"),
    "studio": ("the company that produced {x}", "the studio behind {x}"),
    "location": ("the town where {x} was filmed", "the place in which {x} was shot"),
    "based_on": ("the novel on which {x} is based", "the book that {x} adapts"),
    "author": ("the author of {x}", "the person who wrote {x}", "the writer of {x}"),
    "publisher": ("the publisher of {x}", "the house that published {x}"),
    "setting": ("the town in which {x} is set", "the setting of {x}"),
    "performer": ("the performer of {x}", "the artist who recorded {x}"),
    "label": ("the label that issued {x}", "the label behind {x}"),
    "origin": ("the town where {x} was formed", "the home town of {x}"),
    "leader": ("the leader of {x}", "the musician who led {x}"),
    "birthplace": ("the birthplace of {x}", "the town where {x} was born"),
    "alma": ("the institution where {x} studied", "the institution that educated {x}"),
    "mentor": ("the teacher of {x}", "the mentor of {x}"),
    "prize": ("the award received by {x}", "the prize that {x} won"),
    "burial": ("the town where {x} is buried", "the burial place of {x}"),
    "seat": ("the town where {x} is based", "the seat of {x}"),
    "founder": ("the founder of {x}", "the person who founded {x}"),
    "campus": ("the town that houses {x}", "the location of {x}"),
    "sponsor": ("the institution that awards {x}", "the body that presents {x}"),
    "builder": ("the builder of {x}", "the yard that built {x}"),
    "port": ("the home port of {x}", "the port from which {x} sailed"),
    "editor": ("the editor of {x}", "the person who edited {x}"),
    "river": ("the river on which {x} lies", "the river that flows through {x}"),
    "capital": ("the capital of {x}",),
}

# A hop from object to subject, taken only where one subject fits.
INVERSE_PHRASE: dict[str, tuple[str, ...]] = {
    "director": ("the film directed by {x}", "the film that {x} directed"),
    "lead": ("the film starring {x}", "the film in which {x} played the lead"),
    "composer": ("the film scored by {x}", "the film for which {x} wrote the music"),
    "based_on": ("the film based on {x}", "the film adaptation of {x}"),
    "author": ("the novel by {x}", "the novel that {x} wrote"),
    "performer": ("the song recorded by {x}", "the song that {x} performed"),
    "leader": ("the group led by {x}", "the band that {x} led"),
    "founder": ("the {k} founded by {x}", "the {k} that {x} set up"),
    "mentor": ("the pupil of {x}", "the person taught by {x}"),
    "builder": ("the ship built by {x}",),
    "editor": ("the paper edited by {x}", "the periodical that {x} edited"),
    "sponsor": ("the prize awarded by {x}", "the award presented by {x}"),
    "capital": ("the region that has {x} as its capital", "the region governed from {x}"),
}

# The last hop.
ASK: dict[str, tuple[str, ...]] = {
    "director": ("Who directed {x}?", "Who was the director of {x}?", "{x} was directed by whom?"),
    "lead": ("Who played the lead in {x}?", "Who was the star of {x}?"),
    "composer": ("Who wrote the music for {x}?", "Who composed the score of {x}?"),
    "studio": ("Which company produced {x}?", "What is the production company of {x}?"),
    "location": ("Where was {x} filmed?", "In which town was {x} shot?"),
    "based_on": ("On which novel is {x} based?", "Which novel was adapted as {x}?"),
    "released": ("When was {x} released?", "In which year did {x} open?", "What year saw the release of {x}?"),
    "minutes": ("How long does {x} run?", "What is the running time of {x}?"),
    "author": ("Who wrote {x}?", "Who is the author of {x}?"),
    "publisher": ("Who published {x}?", "Which house published {x}?"),
    "setting": ("Where is {x} set?", "In which town does {x} take place?"),
    "published": ("When was {x} published?", "In which year did {x} first appear?"),
    "performer": ("Who performed {x}?", "Who recorded {x}?"),
    "label": ("Which label released {x}?", "On which label did {x} come out?"),
    "recorded": ("When was {x} recorded?", "From which year does {x} date?"),
    "origin": ("Where was {x} formed?", "In which town did {x} start?"),
    "leader": ("Who led {x}?", "Who was the leader of {x}?"),
    "formed": ("When was {x} formed?", "In which year did {x} come together?"),
    "birthplace": (
        "Where was {x} born?",
        "In which town was {x} born?",
        "What is the birthplace of {x}?",
        "Which town did {x} come from?",
    ),
    "birth": ("When was {x} born?", "In which year was {x} born?", "What is the birth year of {x}?"),
    "death": ("When did {x} die?", "In which year did {x} die?", "What year brought the death of {x}?"),
    "alma": ("Where did {x} study?", "At which institution was {x} educated?"),
    "mentor": ("Who taught {x}?", "Whose pupil was {x}?"),
    "prize": ("Which award did {x} receive?", "What prize was given to {x}?"),
    "spouse": ("Whom did {x} marry?", "Who was the spouse of {x}?"),
    "burial": ("Where is {x} buried?", "In which town is the grave of {x}?"),
    "seat": ("Where is {x} based?", "In which town does {x} have its seat?"),
    "founder": ("Who founded {x}?", "Who was the founder of {x}?"),
    "founded": ("When was {x} founded?", "In which year was {x} established?"),
    "campus": ("Where is {x} located?", "Which town is home to {x}?"),
    "established": ("When was {x} established?", "In which year was {x} first given?"),
    "sponsor": ("Who awards {x}?", "Which body presents {x}?"),
    "builder": ("Who built {x}?", "Which yard built {x}?"),
    "port": ("What was the home port of {x}?", "From which port did {x} sail?"),
    "launched": ("When was {x} launched?", "In which year did {x} enter service?"),
    "editor": ("Who edited {x}?", "Who was the editor of {x}?"),
    "river": ("On which river does {x} lie?", "Which river flows through {x}?"),
    "population": ("How many people live in {x}?", "What is the population of {x}?"),
    "source": ("Where does {x} rise?", "On which mountain is the source of {x}?"),
    "length": ("How long is {x}?", "What is the length of {x}?"),
    "capital": ("What is the capital of {x}?", "From which town is {x} governed?"),
}

INVERSE_ASK: dict[str, tuple[str, ...]] = {
    "director": ("Which film did {x} direct?", "What is the film directed by {x}?"),
    "lead": ("In which film did {x} play the lead?", "Which film stars {x}?"),
    "composer": ("For which film did {x} write the score?", "Which film has music by {x}?"),
    "author": ("Which novel did {x} write?", "What is the title of the novel by {x}?"),
    "performer": ("Which song did {x} record?", "What song was performed by {x}?"),
    "leader": ("Which group did {x} lead?", "Of which band was {x} the leader?"),
    "founder": ("Which {k} did {x} found?", "What {k} was founded by {x}?"),
    "mentor": ("Who was the pupil of {x}?", "Whom did {x} teach?"),
    "builder": ("Which ship was built by {x}?",),
    "editor": ("Which paper did {x} edit?", "Of which periodical was {x} the editor?"),
    "capital": ("Of which region is {x} the capital?", "Which region is governed from {x}?"),
}

Wordings = tuple[tuple[str, ...], tuple[str, ...]]

# (kind, relation) -> wordings for the smaller value, wordings for the larger one.
COMPARE: dict[tuple[str, ...], Wordings] = {
    ("film", "released"): (
        ("Which film came out first, {a} or {b}?", "Of the films {a} and {b}, which was released earlier?"),
        ("Which film is newer, {a} or {b}?", "Which of the films {a} and {b} was released later?"),
    ),
    ("film", "minutes"): (
        ("Which film is shorter, {a} or {b}?",),
        ("Which film runs longer, {a} or {b}?", "Of the films {a} and {b}, which has the longer running time?"),
    ),
    ("novel", "published"): (
        ("Which novel was published first, {a} or {b}?", "Of the novels {a} and {b}, which is older?"),
        ("Which novel appeared later, {a} or {b}?",),
    ),
    ("song", "recorded"): (
        ("Which song was recorded first, {a} or {b}?", "Which is the older song, {a} or {b}?"),
        ("Which song is more recent, {a} or {b}?",),
    ),
    ("person", "birth"): (
        ("Who was born first, {a} or {b}?", "Who is older, {a} or {b}?", "Of {a} and {b}, who was born earlier?"),
        ("Who was born later, {a} or {b}?", "Who is younger, {a} or {b}?"),
    ),
    ("person", "death"): (
        ("Who died first, {a} or {b}?", "Of {a} and {b}, whose death came earlier?"),
        ("Who died later, {a} or {b}?",),
    ),
    ("company", "founded"): (
        ("Which company was founded first, {a} or {b}?", "Which firm is older, {a} or {b}?"),
        ("Which company was set up later, {a} or {b}?",),
    ),
    ("university", "founded"): (
        ("Which university is older, {a} or {b}?", "Which was founded first, {a} or {b}?"),
        ("Which university was founded later, {a} or {b}?",),
    ),
    ("journal", "founded"): (
        ("Which paper was founded first, {a} or {b}?",),
        ("Which paper is younger, {a} or {b}?",),
    ),
    ("river", "length"): (
        ("Which river is shorter, {a} or {b}?",),
        ("Which river is longer, {a} or {b}?", "Of the rivers {a} and {b}, which has the greater length?"),
    ),
    ("town", "population"): (
        ("Which town has fewer inhabitants, {a} or {b}?",),
        ("Which town is larger, {a} or {b}?", "Where do more people live, in {a} or in {b}?"),
    ),
    ("ship", "launched"): (
        ("Which ship was launched first, {a} or {b}?", "Of the ships {a} and {b}, which entered service earlier?"),
        ("Which ship is newer, {a} or {b}?",),
    ),
    ("band", "formed"): (
        ("Which group was formed first, {a} or {b}?",),
        ("Which band came together later, {a} or {b}?",),
    ),
    ("award", "established"): (
        ("Which prize is older, {a} or {b}?", "Which was established first, {a} or {b}?"),
        ("Which prize was established later, {a} or {b}?",),
    ),
}

# (kind, first hop, relation compared) -> the same two lists.
COMPARE_BRIDGE: dict[tuple[str, ...], Wordings] = {
    ("film", "director", "birth"): (
        ("Which film has the director born first, {a} or {b}?", "Of the films {a} and {b}, whose director is older?"),
        (
            "Which film was directed by the younger person, {a} or {b}?",
            "Which film's director was born later, {a} or {b}?",
        ),
    ),
    ("film", "director", "death"): (
        ("Which film has the director who died first, {a} or {b}?",),
        ("Which film's director died later, {a} or {b}?",),
    ),
    ("film", "studio", "founded"): (
        (
            "Which film was produced by the older company, {a} or {b}?",
            "Which film's studio was founded first, {a} or {b}?",
        ),
        ("Which film was made by the company founded later, {a} or {b}?",),
    ),
    ("film", "location", "population"): (
        ("Which film was shot in the smaller town, {a} or {b}?",),
        ("Which film was shot in the town with more inhabitants, {a} or {b}?",),
    ),
    ("novel", "author", "birth"): (
        ("Which novel was written by the person born first, {a} or {b}?", "Whose author is older, {a} or {b}?"),
        ("Which novel has the younger author, {a} or {b}?",),
    ),
    ("novel", "publisher", "founded"): (
        ("Which novel came out with the older publisher, {a} or {b}?",),
        ("Which novel was published by the house founded later, {a} or {b}?",),
    ),
    ("song", "label", "founded"): (
        ("Which song was issued by the older label, {a} or {b}?",),
        ("Which song came out on the label founded later, {a} or {b}?",),
    ),
    ("person", "alma", "founded"): (
        ("Who studied at the older institution, {a} or {b}?",),
        ("Who studied at the institution founded later, {a} or {b}?",),
    ),
    ("person", "birthplace", "population"): (
        ("Who was born in the smaller town, {a} or {b}?",),
        ("Who was born in the town with more inhabitants, {a} or {b}?", "Whose birthplace is larger, {a} or {b}?"),
    ),
    ("ship", "builder", "founded"): (
        ("Which ship was built by the older yard, {a} or {b}?",),
        ("Which ship came from the yard founded later, {a} or {b}?",),
    ),
    ("band", "leader", "birth"): (
        ("Which group had the older leader, {a} or {b}?", "Which band's leader was born first, {a} or {b}?"),
        ("Which group was led by the younger musician, {a} or {b}?",),
    ),
    ("company", "founder", "birth"): (
        ("Which company's founder was born first, {a} or {b}?",),
        ("Which company was founded by the younger person, {a} or {b}?",),
    ),
    ("company", "seat", "population"): (
        ("Which company is based in the smaller town, {a} or {b}?",),
        ("Which company has its seat in the larger town, {a} or {b}?",),
    ),
    ("town", "river", "length"): (
        ("Which town lies on the shorter river, {a} or {b}?",),
        ("Which town lies on the longer river, {a} or {b}?",),
    ),
}
