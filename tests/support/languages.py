"""Corpora in five languages, with gold: ferries, the shipyards that built them, and parks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path


@dataclass(frozen=True)
class World:
    """How a language names and tells of its ferries (f), yards (y), towns (t) and parks, by year (n)."""

    code: str
    ferry: Sequence[Sequence[str]]
    yard: Sequence[Sequence[str]]
    town: Sequence[Sequence[str]]
    names: tuple[str, str, str]
    built: str
    lies: str
    park: tuple[str, str]
    where: str
    who: str

    def entities(self) -> Iterator[tuple[str, str, str]]:
        """Twenty ferries, each with its yard and the yard's town."""
        parts = (list(product(*each)) for each in (self.ferry, self.yard, self.town))
        for names in zip(*parts, strict=True):
            ferry, yard, town = (form.format(*each) for form, each in zip(self.names, names, strict=True))
            yield ferry, yard, town

    def passages(self) -> list[Mapping[str, str]]:
        """Fifty passages."""
        rows = []
        for number, (ferry, yard, town) in enumerate(self.entities()):
            year = 1901 + 3 * number
            rows.append({"_id": f"f{number:02}", "title": ferry, "text": self.built.format(f=ferry, y=yard, n=year)})
            rows.append({"_id": f"y{number:02}", "title": yard, "text": self.lies.format(y=yard, t=town)})
        for number in range(10):
            title, text = (each.format(n=number + 1) for each in self.park)
            rows.append({"_id": f"p{number:02}", "title": title, "text": text})
        return rows

    def questions(self) -> list[Mapping[str, object]]:
        """Forty questions: where a ferry's yard lies (two passages), and who built it (one)."""
        rows: list[Mapping[str, object]] = []
        for number, (ferry, *_) in enumerate(self.entities()):
            own = f"f{number:02}"
            rows.append({"_id": f"w{number}", "text": self.where.format(f=ferry), "gold": [own, f"y{number:02}"]})
            rows.append({"_id": f"b{number}", "text": self.who.format(f=ferry), "gold": [own]})
        return rows

    def write(self, folder: Path) -> Path:
        """Write the set as a folder that `--dataset` takes."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("corpus", self.passages()), ("queries", self.questions())):
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        return folder


WORLDS = {
    world.code: world
    for world in (
        World(
            "zh",
            ("海飞长白青", "燕鲸风鹭"),
            ("澜岭金岚松", "江湾桥浦"),
            ("诺云石梅柳", "海台城港"),
            ("{}{}号", "{}{}造船厂", "{}{}镇"),
            "{f}是一艘渡轮，{n}年由{y}建造，长期往返于海峡两岸。",
            "{y}位于{t}，由当地商人创办。该厂以建造渡轮闻名。",
            ("第{n}号公园", "第{n}号公园里有湖泊和茶馆。春天游客很多！"),
            "建造{f}的造船厂位于哪里？",
            "{f}是哪家造船厂建造的？",
        ),
        World(
            "ja",
            ("海飛長白青", "燕鯨風鷺"),
            (("バス", "ハス", "パス", "カト", "ガト"), "ノミルラ"),
            ("松梅竹桜柳", "浦台城港"),
            ("{}{}丸", "{}{}造船所", "{}{}町"),
            "{f}は{n}年に{y}で建造された渡し船である。海峡を往復した。",
            "{y}は{t}にある。地元の商人が設立した造船所である。",
            ("第{n}公園", "第{n}公園には湖と茶屋がある。春は人が多い！"),
            "{f}を建造した造船所はどこにありますか？",
            "{f}はどこで建造されましたか？",
        ),
        World(
            "hi",
            (("किला", "काला", "कोला", "नीला", "पीला"), ("तारा", "सागर", "पवन", "मोती")),
            (("चंदन", "मधुर", "शीतल", "उत्तर", "दक्षिण"), ("गढ़", "पुर", "नगर", "कोट")),
            (("राम", "सीता", "गंगा", "यमुना", "सोन"), ("घाट", "वन", "टोला", "बाग")),
            ("{} {}", "{}{} पोत कारखाना", "{}{}"),
            "{f} एक नौका है। इसे {n} में {y} ने बनाया था।",
            "{y} {t} में है। इसे स्थानीय व्यापारियों ने शुरू किया था।",
            ("उद्यान {n}", "उद्यान {n} में झील और चाय की दुकान है। यहाँ बहुत लोग आते हैं।"),
            "{f} को बनाने वाला कारखाना कहाँ है?",
            "{f} को किसने बनाया था?",
        ),
        World(
            "ar",
            (("النورس", "الهلال", "الفجر", "الريح", "البحر"), ("الأبيض", "الأزرق", "السريع", "القديم")),
            (("الزيتون", "النخيل", "الصفا", "المرجان", "الياسمين"), ("الكبير", "الصغير", "الشرقي", "الغربي")),
            (("وادي", "جبل", "رأس", "عين", "بيت"), ("السلام", "الحجر", "الورد", "الماء")),
            ("{} {}", "حوض {} {}", "{} {}"),
            "{f} عبارة قديمة. بناها {y} في عام {n} وكانت تعبر المضيق.",
            "يقع {y} في {t}. أسسه تجار محليون من المدينة.",
            ("حديقة {n}", "في حديقة {n} بحيرة ومقهى. هل يزورها الناس؟ نعم في الربيع."),
            "أين يقع الحوض الذي بنى {f}؟",
            "من الذي بنى {f}؟",
        ),
        World(
            "de",
            (("Grüner", "Müller", "Muller", "Schöner", "Großer"), ("Falke", "Wal", "Reiher", "Stern")),
            (("Nord", "Süd", "Ost", "West", "Elb"), ("hafen", "ufer", "damm", "brück")),
            (("Lang", "Breit", "Alt", "Neu", "Ober"), ("feld", "moor", "stein", "tal")),
            ("{} {}", "{}{}er Werft", "{}{}"),
            "Die {f} ist eine Fähre, die im Jahr {n} von der {y} gebaut wurde. Sie fuhr über die Meerenge.",
            "Die {y} liegt in {t}. Sie wurde von Kaufleuten aus der Gegend gegründet.",
            ("Park {n}", "Im Park {n} gibt es einen See und ein Teehaus. Im Frühling ist er voll."),
            "Wo liegt die Werft, die die {f} gebaut hat?",
            "Wer hat die {f} gebaut?",
        ),
    )
}
