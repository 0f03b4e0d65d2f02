"""A logged dialogue about a city, in the form of ConvLab-2."""


def convlab2():
    """A dialogue of ConvLab-2: the user wants a hotel in the north and its phone number."""
    goal = {"hotel": {"info": {"area": "north"}, "reqt": ["phone"]}, "taxi": {}, "message": []}
    said = [
        {"Hotel-Inform": [["Area", "north"]]},
        {"Hotel-Request": [["Price", "?"]], "Hotel-Inform": [["Choice", "9"]]},
        {"Hotel-Inform": [["Price", "dontcare"]], "Hotel-Request": [["Phone", "?"]]},
        {"Hotel-Inform": [["Phone", "01223"]], "general-reqmore": [["none", "none"]]},
        {"general-bye": [["none", "none"]]},
        {"general-bye": [["none", "none"]]},
    ]
    log = [{"text": "", "dialog_act": acts} for acts in said]
    return {"PMUL1.json": {"goal": goal, "log": log}}
