"""Pairs of our own: texts that are the same statement, and texts that only look like it."""

from __future__ import annotations

TOGETHER = [
    ("The heating engineer comes on Monday.", "The heating engineer comes on Monday"),
    ("The heating engineer comes on Monday.", " The heating  engineer\tcomes on Monday!\r\n"),
    ("My brother's bakery opens at six", "My brother’s bakery opens at six."),
    ('She said "come in" and smiled', "She said “come in” and smiled"),
    ("We meet on Tuesday - bring the plans", "We meet on Tuesday — bring the plans"),
    ("We meet on Tuesday - bring the plans", "We meet on Tuesday—bring the plans"),
    ("The café serves crêpes", "The cafe\u0301 serves cre\u0302pes"),
    ("I'm sure we'll win", "I'M Sure We'Ll Win"),
    ("the old mill is for sale", "The old mill is for sale."),
    ("He keeps bees", "He keeps \u200bbees"),
    ("Room ４１２ is free", "Room 412 is free"),
    ("It was 30°C", "It was 30℃"),
]

APART = [
    ("Ada likes tea.", "Ada does not like tea."),
    ("Ada likes tea.", "Ada likes tea?"),
    ("Ada lent Bob the ladder.", "Bob lent Ada the ladder."),
    ("My uncle called my aunt.", "My aunt called my uncle."),
    ("use Postgres, not MySQL", "use MySQL, not Postgres"),
    ("The parcel leaves on Tuesday.", "The parcel leaves on Thursday."),
    ("I always lock the shed.", "I never lock the shed."),
    ("He is able to drive.", "He is unable to drive."),
    ("The valve is open.", "The valve is closed."),
    ("Bring bread or cheese.", "Bring bread and cheese."),
    ("We agreed to sell.", "We agreed not to sell."),
    ("Copy it to /srv/Plans", "Copy it to /srv/plans"),
    ("IT called about it", "It called about IT"),
    ("They sent US a letter", "They sent us a letter"),
    ("Mi papá cocina", "Mi papa cocina"),
    ("Der Chef mochte den Kuchen", "Der Chef möchte den Kuchen"),
    ("Verdict: 👍", "Verdict: 👎"),
    ("ฉันชอบชา", "ฉันชอบกาแฟ"),
    ("ሰላም ለዓለም", "ሰላም ለሁሉም"),
    ("The area is 10²", "The area is 102"),
    (
        "The mill, the barn, the house, and the two sheds behind the orchard were painted red by the new owner.",
        "The mill, the barn, the house, and the two sheds behind the orchard were painted red by the old owner.",
    ),
    ("Word " * 300 + "yes", "Word " * 300 + "no"),
]

CASES_OF_A_NUMBER = [
    ("The deadline is October 15th", "The deadline is October 16th"),
    ("Parcel 1Z999AA10123456784 arrived", "Parcel 1Z999AA10123456785 arrived"),
    ("The id is 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "The id is 3f2504e0-4f89-11d3-9a0c-0305e82c3302"),
    ("Rent is 1,850 a month", "Rent is 1,580 a month"),
    ("Call +44 20 7946 0958", "Call +44 20 7946 0959"),
]
